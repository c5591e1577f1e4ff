//! The instructions to send, receive and ack a message, compared with the stored numbers.
//!
//! The program `instructions` runs under callgrind for two numbers of messages; the difference of
//! the counts is the cost of the messages between them, without start and end. Invariant: a number
//! that leaves the stored one by more than the tolerance fails, in either direction.
//! `HIVE_REGENERATE=1 make instructions` stores new numbers.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

/// The arguments of the program, each with a number of its own.
const WAYS: [&str; 2] = ["unary", "streamed"];
/// The two numbers of messages. How often the log is folded between them does not matter: a fold
/// has less than a ten-thousandth of the instructions.
const MESSAGES: [u64; 2] = [200, 600];
/// How far a number may be from the stored one. Counts of a program differ by at most 0.4 %: timers
/// follow the real time, and a run on a busy machine takes longer.
const TOLERANCE_PERCENT: u64 = 3;

/// How many more instructions a message may have while metrics are offered, or traces exported, in
/// percent; and how many more one that is itself in a trace.
const OPTIONS: [(&str, u64); 3] = [("--metrics", 5), ("--traces", 5), ("--traced", 10)];

/// The profile of the stored numbers.
const PROFILE: &str = "campaign";
const PROGRAM: &str = env!("CARGO_BIN_EXE_instructions");

/// Makes the C library copy and compare memory in the same way on every processor.
const TUNABLES: &str = "glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-AVX_Fast_Unaligned_Load,-ERMS,\
                        -FSRM,-Fast_Unaligned_Copy";

/// The command that stores new numbers.
const STORE: &str = "`HIVE_REGENERATE=1 make instructions`";

/// The first lines of the file with the numbers.
const HEADER: &str = "\
# Instructions to send, receive and ack a message of 200 bytes: broker and clients together.
# `make instructions` compares them; `HIVE_REGENERATE=1 make instructions` stores new ones.
";

#[test]
fn a_message_costs_the_stored_number_of_instructions() {
    let is_profile = Path::new(PROGRAM).parent().is_some_and(|dir| dir.ends_with(PROFILE));
    let valgrind = Command::new("valgrind").arg("--version").output();
    if !allows("profile `campaign`; run `make instructions`", is_profile)
        || !allows("`valgrind`", valgrind.is_ok_and(|output| output.status.success()))
    {
        return;
    }
    let plain = counted(&[]);
    for (option, percent) in OPTIONS {
        for ((way, count), (_, with)) in plain.iter().zip(&counted(&[option])) {
            say(&format!("{way}: {count} instructions a message, {with} with {option}"));
            let is_little = with * 100 <= count * (100 + percent);
            assert!(is_little, "{way}: {option} costs more than {percent} %");
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.txt");
    if std::env::var_os("HIVE_REGENERATE").is_some() {
        std::fs::write(path, page(&plain)).expect("the numbers are written");
        return;
    }
    let stored = std::fs::read_to_string(path).expect("numbers are stored");
    let number = |way| {
        let stored = value(&stored, way).and_then(|number| number.parse().ok());
        stored.unwrap_or_else(|| panic!("no number is stored for {way}; {STORE} stores it"))
    };
    let problems: Vec<String> =
        plain.iter().filter_map(|(way, count)| problem(way, *count, number(way))).collect();
    let with = value(&stored, "compiler").unwrap_or_default();
    let note = match compiler() {
        here if here == with => String::new(),
        here => format!(
            "\nSQLite was built by another C compiler then ({with}) than here ({here}), which may be \
             the cause."
        ),
    };
    assert!(problems.is_empty(), "{}{note}", problems.join("\n"));
}

/// Returns what is wrong with a count, and what to do.
fn problem(way: &str, count: u64, stored: u64) -> Option<String> {
    let percent = count.abs_diff(stored) as f64 * 100.0 / stored as f64;
    if count.abs_diff(stored) * 100 <= stored * TOLERANCE_PERCENT {
        return None;
    }
    let advice = if count > stored {
        let profile = profile(way, MESSAGES[1]);
        format!(
            "more than the stored {stored}. Find the cause: `callgrind_annotate {}` lists the functions. If the cost is \
             wanted, run {STORE}, and give the reason in the commit",
            profile.display()
        )
    } else {
        format!(
            "fewer than the stored {stored}. Run {STORE} and commit the new number, so that the gain stays"
        )
    };
    Some(format!("{way}: a message costs {count} instructions, {percent:.1} % {advice}."))
}

/// Returns the instructions of a message for each way, with these options.
fn counted(options: &[&str]) -> Vec<(&'static str, u64)> {
    let one = |way| {
        let [few, many] = MESSAGES.map(|messages| total(way, messages, options));
        (way, (many - few) / (MESSAGES[1] - MESSAGES[0]))
    };
    thread::scope(|scope| {
        let runs = WAYS.map(|way| scope.spawn(move || one(way)));
        runs.into_iter().map(|run| run.join().expect("a count")).collect()
    })
}

/// Returns the file with the profile of a run.
fn profile(way: &str, messages: u64) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("instructions.{way}.{messages}"))
}

/// Returns the instructions of a whole run.
fn total(way: &str, messages: u64, options: &[&str]) -> u64 {
    let mut out = std::ffi::OsString::from("--callgrind-out-file=");
    // The profile that a problem names is of a run without options.
    let suffix = options.concat();
    out.push(profile(&format!("{way}{suffix}"), messages));
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(out)
        .args([PROGRAM, way, &messages.to_string()])
        .args(options)
        .env("GLIBC_TUNABLES", TUNABLES)
        .output()
        .expect("valgrind starts");
    let Output { status, stderr, .. } = output;
    let said = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "the run of {messages} messages, {way}, failed: {status}\n{said}");
    let count =
        said.lines().find_map(|line| line.split_once("Collected : ")).map(|(_, count)| count);
    count
        .and_then(|count| count.trim().parse().ok())
        .unwrap_or_else(|| panic!("callgrind printed no count:\n{said}"))
}

/// Returns the stored value of a key.
fn value<'s>(stored: &'s str, key: &str) -> Option<&'s str> {
    stored.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
}

/// Returns the text of the file with the numbers.
fn page(counted: &[(&str, u64)]) -> String {
    let mut page = HEADER.to_owned();
    for (way, count) in counted {
        writeln!(page, "{way} {count}").expect("memory takes it");
    }
    writeln!(page, "compiler {}", compiler()).expect("memory takes it");
    page
}

/// Returns the C compiler that built SQLite and the allocator; that of Rust is pinned.
fn compiler() -> String {
    let output = Command::new("cc").arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.ok().and_then(|text| text.lines().next().map(str::to_owned)).unwrap_or_default()
}

/// Whether the numbers can be counted. Where nothing may be skipped, a host that cannot is a
/// failure. (The rig has the same; its crate would change the features of this build.)
fn allows(what: &str, possible: bool) -> bool {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    assert!(
        possible || !(is("CI", "true") || is("HIVE_TEST_STRICT", "1")),
        "instructions cannot be counted without {what}, and nothing may be skipped here"
    );
    if !possible {
        say(&format!("NOT TESTED: the instructions of a message need {what}"));
    }
    possible
}

/// Prints a line past the capture of the test, which is thrown away when it passes.
fn say(line: &str) {
    drop(writeln!(std::io::stderr().lock(), "{line}"));
}
