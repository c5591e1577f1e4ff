//! Man pages: one for each program, and one for each command.

use std::collections::BTreeSet;

use clap::{Arg, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use hivectl::schema::{PRINTED, Printed, Shape};

use super::Files;
use super::programs::{self, Program};

pub(crate) fn pages() -> Files {
    let mut files = Files::new();
    for program in programs::all() {
        add(&program, &[], &program.command, &mut files);
    }
    files
}

fn add(program: &Program, parents: &[&Command], command: &Command, files: &mut Files) {
    files.insert(format!("{}.1", title(command)), page(program, parents, command));
    let parents = [parents, &[command]].concat();
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        add(program, &parents, below, files);
    }
}

/// Returns the name of a command's page, as `hivectl-inbox-ack`.
fn title(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// Returns a command's words without the program's, as `inbox ack`.
fn path<'c>(program: &Program, command: &'c Command) -> &'c str {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    name.strip_prefix(program.command.get_name()).unwrap_or(name).trim_start()
}

fn page(program: &Program, parents: &[&Command], command: &Command) -> String {
    let source = format!(
        "{} {}",
        program.command.get_name(),
        program.command.get_version().unwrap_or_default()
    );
    // The end of a whole page is in sections of its own here.
    let man = Man::new(command.clone()).title(title(command)).source(source).manual("Hive");
    let mut page = Vec::new();
    let parts = [
        Man::render_title,
        Man::render_name_section,
        Man::render_synopsis_section,
        Man::render_description_section,
    ];
    for part in parts {
        part(&man, &mut page).expect("a vector takes everything");
    }
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut page).expect("a vector takes everything");
    }
    let mut roff = Roff::new();
    commands(command, &mut roff);
    notes(command, &mut roff);
    json(program, command, &mut roff);
    codes(program, command, &mut roff);
    environment(program, command, &mut roff);
    files(program, &mut roff);
    see_also(program, parents, command, &mut roff);
    page.extend(roff.to_roff().into_bytes());
    // The preamble of a roff appears once, at the beginning of the page.
    let text = String::from_utf8(page).expect("text");
    let title = text.lines().position(|line| line.starts_with(".TH")).expect("a page has a title");
    let kept =
        text.lines().enumerate().filter(|(number, line)| *number < title || !is_preamble(line));
    kept.map(|(_, line)| format!("{}\n", line.trim_end())).collect()
}

/// A line that defines how apostrophes are written.
fn is_preamble(line: &str) -> bool {
    line.starts_with(".ie \\n(.g") || line.starts_with(".el .ds Aq")
}

fn section(roff: &mut Roff, name: &str) {
    roff.control("SH", [name]);
}

fn entry(roff: &mut Roff, head: Vec<Inline>, text: &str) {
    roff.control("TP", []);
    roff.text(head);
    roff.text([roman(text)]);
}

fn commands(command: &Command, roff: &mut Roff) {
    let below: Vec<&Command> =
        command.get_subcommands().filter(|below| !below.is_hide_set()).collect();
    if below.is_empty() {
        return;
    }
    section(roff, "COMMANDS");
    for below in below {
        let about = below.get_about().map(ToString::to_string).unwrap_or_default();
        entry(roff, vec![bold(title(below)), roman("(1)")], &about);
    }
}

/// Adds the text below the options in the help, if it says more than the sections that follow.
fn notes(command: &Command, roff: &mut Roff) {
    let Some(help) = command.get_after_long_help().or(command.get_after_help()) else { return };
    let help = help.to_string();
    if help.contains("Exit codes:") && !help.contains("Examples:") {
        return;
    }
    section(roff, "NOTES");
    for (number, part) in
        help.split("\n\n").filter(|part| !part.starts_with("Exit codes:")).enumerate()
    {
        if number > 0 {
            roff.control("PP", []);
        }
        // Lines that are set in belong where they stand.
        let in_place = part.lines().any(|line| line.starts_with(' '));
        if in_place {
            roff.control("nf", []);
        }
        for line in part.lines().filter(|line| !line.is_empty()) {
            roff.text([roman(line)]);
        }
        if in_place {
            roff.control("fi", []);
        }
    }
}

fn json(program: &Program, command: &Command, roff: &mut Roff) {
    let path = path(program, command);
    let printed: Vec<&Printed> = PRINTED.iter().filter(|printed| printed.command == path).collect();
    if program.command.get_name() != "hivectl" || printed.is_empty() {
        return;
    }
    section(roff, "JSON");
    for printed in printed {
        let options: Vec<&str> = printed.with.into_iter().chain(["--json"]).collect();
        let shape = match printed.shape {
            Shape::Object => "one object",
            Shape::Array => "an array of objects",
            Shape::Lines => "one object on each line",
        };
        entry(
            roff,
            vec![bold(options.join(" "))],
            &format!("prints {shape} of the schema {}.", printed.schema),
        );
    }
}

fn codes(program: &Program, command: &Command, roff: &mut Roff) {
    section(roff, "EXIT STATUS");
    let path = path(program, command);
    let is_hivectl = program.command.get_name() == "hivectl";
    for (code, meaning) in program.codes {
        if is_hivectl && !path.is_empty() && !programs::codes_of(path).contains(code) {
            continue;
        }
        let note = if is_hivectl { programs::note_on(path, *code) } else { None };
        let meaning =
            note.map_or_else(|| (*meaning).to_owned(), |note| format!("{meaning}; {note}"));
        entry(roff, vec![bold(code.to_string())], &format!("{meaning}."));
    }
}

fn environment(program: &Program, command: &Command, roff: &mut Roff) {
    let of_options = command
        .get_arguments()
        .filter_map(|argument| Some((argument.get_env()?.to_str()?, option(argument)?)));
    let of_options: Vec<(String, String)> = of_options
        .map(|(name, option)| {
            (name.to_owned(), format!("Stands for {option}, where that is not given."))
        })
        .collect();
    let further =
        program.environment.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    let mut all: Vec<(String, String)> = of_options.into_iter().chain(further).collect();
    all.sort();
    if all.is_empty() {
        return;
    }
    section(roff, "ENVIRONMENT");
    for (name, text) in all {
        entry(roff, vec![bold(name)], &text);
    }
}

fn option(argument: &Arg) -> Option<String> {
    argument.get_long().map(|long| format!("--{long}"))
}

fn files(program: &Program, roff: &mut Roff) {
    if program.files.is_empty() {
        return;
    }
    section(roff, "FILES");
    for (path, text) in program.files {
        entry(roff, vec![bold(*path)], text);
    }
}

/// Adds links to the command's subcommands, parents and siblings, and to other programs.
fn see_also(program: &Program, parents: &[&Command], command: &Command, roff: &mut Roff) {
    let mut pages: BTreeSet<&str> = command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .chain(parents.iter().copied())
        .map(title)
        .collect();
    // A command of the program itself has too many siblings.
    if let [_, .., parent] = parents {
        pages.extend(parent.get_subcommands().map(title));
    }
    pages.extend(program.see_also);
    pages.remove(title(command));
    section(roff, "SEE ALSO");
    let mut words = Vec::new();
    for page in pages {
        words.extend((!words.is_empty()).then(|| roman(", ")));
        words.extend([bold(page), roman("(1)")]);
    }
    roff.text(words);
}
