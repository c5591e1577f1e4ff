//! Plugins as the real CLI installs them: from a directory, twice, and what it says where it
//! cannot. Nothing here reaches a network.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use hive_harness::claude::program::Program;
use hive_harness::plugins::{self, Plan};
use hive_tests::claude;
use serde_json::{Value, json};

use crate::stage::installed;

/// A marketplace in a directory, with one plugin.
fn marketplace(dir: &Path) {
    for below in [".claude-plugin", "formatter/.claude-plugin"] {
        fs::create_dir_all(dir.join(below)).expect("a directory");
    }
    let plugin = json!({ "name": "formatter", "source": "./formatter", "description": "formats" });
    let market = json!({ "name": "mine", "owner": { "name": "me" }, "plugins": [plugin] });
    fs::write(dir.join(".claude-plugin/marketplace.json"), market.to_string()).expect("a file");
    let manifest = json!({ "name": "formatter", "version": "1.0.0", "description": "formats" });
    fs::write(dir.join("formatter/.claude-plugin/plugin.json"), manifest.to_string())
        .expect("a file");
}

#[tokio::test]
async fn plugins_of_a_directory_are_installed_and_failures_are_reported() {
    let program = installed();
    let dir = tempfile::tempdir().expect("a directory");
    let (home, state, market) =
        (dir.path().join("home"), dir.path().join("state"), dir.path().join("market"));
    for created in [&home, &state] {
        fs::create_dir(created).expect("a directory");
    }
    marketplace(&market);
    let mut environment: BTreeMap<OsString, OsString> =
        claude::environment(&home, "http://127.0.0.1:1").into_iter().collect();
    for name in ["HTTPS_PROXY", "HTTP_PROXY"] {
        environment.insert(name.into(), "http://127.0.0.1:1".into());
    }
    let market = market.to_str().expect("plain").to_owned();
    let plan = |marketplaces: Vec<String>, plugins: &[&str]| Plan {
        marketplaces,
        plugins: plugins.iter().map(ToString::to_string).collect(),
        auto_update: true,
    };

    // The second start finds everything in place.
    for _ in 0..2 {
        let failures = plugins::install(
            &Program::plain(program.clone()),
            &environment,
            &state,
            &plan(vec![market.clone()], &["formatter@mine"]),
        )
        .await;
        assert_eq!(failures, Vec::<String>::new());
    }
    let settings =
        fs::read_to_string(home.join(".claude/settings.json")).expect("the user's settings");
    let settings: Value = serde_json::from_str(&settings).expect("JSON");
    assert_eq!(settings["enabledPlugins"], json!({ "formatter@mine": true }));
    assert_eq!(
        fs::read_dir(&state).expect("there").count(),
        0,
        "the working directory stays as it was"
    );

    let missing = dir.path().join("missing").to_str().expect("plain").to_owned();
    let failures = plugins::install(
        &Program::plain(program.clone()),
        &environment,
        &state,
        &plan(vec![missing], &["other@mine", "formatter@mine"]),
    )
    .await;
    let [market, plugin] = failures.as_slice() else { panic!("{failures:?}") };
    assert!(
        market.starts_with("`claude plugin marketplace add ")
            && market.contains("Path does not exist"),
        "{market}"
    );
    assert!(
        plugin.starts_with("`claude plugin install other@mine` failed with exit code 1: "),
        "{plugin}"
    );
    assert!(plugin.contains("not found in marketplace"), "{plugin}");
}
