//! `hivectl stats`: numbers, and drawings that fit.

use super::hive::Hive;
use super::terminal::Terminal;

#[tokio::test(flavor = "multi_thread")]
async fn drawings_have_block_characters_where_the_locale_knows_them_and_are_as_wide_as_the_terminal()
 {
    let hive = Hive::busy().await;
    for (locale, columns) in [("en_US.UTF-8", 100), ("C", 60)] {
        let terminal = Terminal::open();
        terminal.resize(40, columns);
        let mut command = hive.hivectl(&["stats", "ada"]);
        command.env("LANG", locale).env("NO_COLOR", "1");
        let (ran, shown) = Hive::run_on(terminal, command).await;
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        let widest = shown
            .lines()
            .skip_while(|line| !line.starts_with("tools"))
            .map(|line| line.chars().count())
            .max();
        assert!(widest <= Some(usize::from(columns)), "{shown}");
        assert_eq!(shown.contains('█'), locale != "C", "{shown}");
        assert_eq!(shown.is_ascii(), locale == "C", "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_ended_there_is_nothing_to_draw() {
    let hive = Hive::busy().await;
    let ran = hive.run(&["stats", "bob", "--window", "1m"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains("took         -\n") && !ran.out.contains("over time"), "{}", ran.out);
    let ran = Hive::empty().run(&["stats"]).await;
    assert!(
        ran.code == 0 && ran.out.lines().count() == 7,
        "only the totals, what is open, and whose word it is: {}",
        ran.out
    );
}
