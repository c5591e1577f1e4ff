//! The reference of `hivectl`: one page, one section for each command.

use clap::{Arg, Command};
use hivectl::schema::{PRINTED, Printed, Shape, WITHOUT_JSON};

use super::Files;
use super::programs::{self, Program};

const BEGINNING: &str = "\
# hivectl

The commands of the operator. `make docs` generates this page from the program; do not edit it. The [man pages](../man/hivectl.1)
(`man docs/man/hivectl.1`) and `hivectl COMMAND --help` have the same content. [Running a hive](../operations.md) shows how to use the commands together.

Data goes to stdout, everything else to stderr. On a terminal a list is a table, cut to its width. Colours are used only on a terminal, and never with
`NO_COLOR`. A command asks for confirmation only if stdin is a terminal. Errors say what failed, why (with the [reason](../errors/README.md)), and what to do next.
";

const JSON: &str = "\
## JSON

Every command takes `--json`. The field `schema` of an object names its schema. A list is an array of such objects; an empty list is `[]`.
With `--follow` each line is one object. The schemas are JSON Schema, draft 2020-12, in [docs/schemas](../schemas).

- Every field of a schema is always present; a field without a value is `null`.
- Times are ISO 8601 in UTC, to the millisecond. Ids are whole numbers, greater than 0.
- Choices are words in lower case. A schema lists the known ones; a newer broker may have more, so a reader must accept unknown words. A choice
  that this version of `hivectl` does not know is `unknown_N`.
- Within `v1` fields are only added. A field that is removed, or that gets another meaning, makes a `v2`. So a reader ignores unknown fields.
- Errors are no JSON: they go to stderr, and the exit code tells their kind. What was done before one is still printed.
";

pub(crate) fn pages() -> Files {
    let program = programs::hivectl();
    let mut page = String::from(BEGINNING);
    page.push_str("\n## Commands\n\n| command | what it does |\n| --- | --- |\n");
    let mut sections = String::new();
    for command in program.command.get_subcommands() {
        walk(command, &mut page, &mut sections);
    }
    page.push_str("\n## Options of every command\n\n");
    table(program.command.get_arguments().filter(|argument| argument.is_global_set()), &mut page);
    page.push_str("\n## Exit codes\n\n| code | meaning |\n| --- | --- |\n");
    for (code, meaning) in program.codes {
        page.push_str(&format!("| {code} | {meaning} |\n"));
    }
    environment(&program, &mut page);
    page.push_str(&format!("\n{JSON}"));
    page.push_str(&sections);
    Files::from([("hivectl.md".to_owned(), page)])
}

/// A line of the overview, and a section.
fn walk(command: &Command, overview: &mut String, sections: &mut String) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    overview.push_str(&format!("| [`{name}`](#{}) | {} |\n", name.replace(' ', "-"), cell(&about)));
    section(command, name, sections);
    for below in command.get_subcommands() {
        walk(below, overview, sections);
    }
}

fn section(command: &Command, name: &str, page: &mut String) {
    page.push_str(&format!("\n## {name}\n\n"));
    let about = command
        .get_long_about()
        .or(command.get_about())
        .map(ToString::to_string)
        .unwrap_or_default();
    page.push_str(&format!("{}\n", about.trim()));
    let usage = command.clone().render_usage().to_string();
    let usage: Vec<&str> = usage.trim_start_matches("Usage:").lines().map(str::trim).collect();
    page.push_str(&format!("\n```text\n{}\n```\n", usage.join("\n")));
    let arguments: Vec<&Arg> =
        command.get_arguments().filter(|argument| is_own(argument)).collect();
    if !arguments.is_empty() {
        page.push('\n');
        table(arguments.into_iter(), page);
    }
    if let Some(help) = command.get_after_long_help() {
        page.push_str(&format!("\n```text\n{}\n```\n", help.to_string().trim()));
    }
    let path = name.trim_start_matches("hivectl ");
    if command.is_subcommand_required_set() {
        return;
    }
    json(path, page);
    let codes: Vec<String> =
        programs::codes_of(path).iter().map(|code| code_note(path, *code)).collect();
    page.push_str(&format!("\nExit codes: {}.\n", codes.join(", ")));
}

/// A code, with what it means for this command in particular.
fn code_note(path: &str, code: u8) -> String {
    programs::note_on(path, code)
        .map_or_else(|| code.to_string(), |note| format!("{code} ({note})"))
}

fn is_own(argument: &Arg) -> bool {
    !argument.is_global_set()
        && !argument.is_hide_set()
        && argument.get_id() != "help"
        && argument.get_id() != "version"
}

fn table<'a>(arguments: impl Iterator<Item = &'a Arg>, page: &mut String) {
    page.push_str("| argument | meaning |\n| --- | --- |\n");
    for argument in arguments {
        page.push_str(&format!("| `{}` | {} |\n", called(argument), cell(&meaning(argument))));
    }
}

/// Returns an argument as it is written on the command line.
fn called(argument: &Arg) -> String {
    let names: Vec<&str> = argument
        .get_value_names()
        .unwrap_or_default()
        .iter()
        .map(clap::builder::Str::as_str)
        .collect();
    let many = argument.get_num_args().is_some_and(|count| count.max_values() > 1);
    let values = format!("{}{}", names.join(" "), if many { "..." } else { "" });
    let takes = argument.get_num_args().is_some_and(|count| count.takes_values());
    match argument.get_long() {
        Some(long) if takes => format!("--{long} {values}"),
        Some(long) => format!("--{long}"),
        None => values,
    }
}

fn meaning(argument: &Arg) -> String {
    let mut meaning = argument
        .get_long_help()
        .or(argument.get_help())
        .map(ToString::to_string)
        .unwrap_or_default();
    let words: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|_| argument.get_num_args().is_some_and(|count| count.takes_values()))
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !words.is_empty() {
        meaning.push_str(&format!("; one of {}", words.join(", ")));
    }
    let defaults: Vec<String> = argument
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy().into_owned())
        .collect();
    if !defaults.is_empty()
        && !argument.is_hide_default_value_set()
        && argument.get_num_args().is_some_and(|count| count.takes_values())
    {
        meaning.push_str(&format!(" [default: {}]", defaults.join(" ")));
    }
    if let Some(variable) = argument.get_env() {
        meaning.push_str(&format!(" [env: {}]", variable.to_string_lossy()));
    }
    meaning
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn environment(program: &Program, page: &mut String) {
    page.push_str("\n## Environment\n\n| variable | meaning |\n| --- | --- |\n");
    for argument in program.command.get_arguments() {
        if let (Some(name), Some(option)) = (argument.get_env(), argument.get_long()) {
            page.push_str(&format!(
                "| `{}` | Stands for `--{option}`, where that is not given. |\n",
                name.to_string_lossy()
            ));
        }
    }
    for (name, text) in program.environment {
        page.push_str(&format!("| `{}` | {} |\n", name.replace(", ", "`, `"), cell(text)));
    }
}

/// Adds the schemas of the output with `--json`.
fn json(path: &str, page: &mut String) {
    if let Some((_, why)) = WITHOUT_JSON.iter().find(|(command, _)| *command == path) {
        page.push_str(&format!("\nNo JSON: it {why}.\n"));
    }
    let link = |printed: &Printed| {
        let shape = match printed.shape {
            Shape::Object => "an object of",
            Shape::Array => "an array of",
            Shape::Lines => "lines of",
        };
        let with = printed.with.map(|with| format!("with `{with}` ")).unwrap_or_default();
        format!("{with}{shape} [{schema}](../schemas/{schema}.json)", schema = printed.schema)
    };
    let printed: Vec<String> =
        PRINTED.iter().filter(|printed| printed.command == path).map(link).collect();
    if !printed.is_empty() {
        page.push_str(&format!("\nJSON: {}.\n", printed.join("; ")));
    }
}
