//! The table of reasons in `core/src/reason/table.rs`, made from `proto/hive/v1/reason.proto`: the
//! core knows no protobuf, and the contract is the one place where a reason is declared.

use std::fmt::Write as _;
use std::path::Path;

use protox::prost_reflect::{DynamicMessage, EnumDescriptor, ReflectMessage as _, Value};

/// The columns of a comment in the table.
const COMMENT_COLUMNS: usize = 100 - "    /// ".len();

/// A reason, and its option `about`.
struct Declared {
    name: String,
    comment: String,
    number: i32,
    about: DynamicMessage,
}

/// Returns all reasons.
fn declared(proto: &Path) -> Vec<Declared> {
    let mut compiler = protox::Compiler::new([proto]).expect("proto/ is an include path");
    compiler.include_source_info(true);
    compiler.open_file(proto.join("hive/v1/reason.proto")).expect("the file compiles");
    let pool = compiler.descriptor_pool();
    let reasons = pool.get_enum_by_name("hive.v1.Reason").expect("the enum of reasons");
    let about = pool.get_extension_by_name("hive.v1.about").expect("the option");
    let declared = reasons.values().enumerate().skip(1).map(|(place, value)| {
        let name = value.name().strip_prefix("REASON_").expect("the prefix of the enum");
        let options = value.options();
        assert!(options.has_extension(&about), "{name}: the option `about` is missing");
        let options = options.get_extension(&about);
        Declared {
            name: name.to_owned(),
            comment: comment(&reasons, place),
            number: value.number(),
            about: options.as_message().expect("a message").clone(),
        }
    });
    declared.collect()
}

/// Returns the text of the table.
pub(crate) fn table(proto: &Path) -> String {
    let mut table = String::from(
        "//! The reasons of `proto/hive/v1/reason.proto`, written by `make gen`.\n\n\
         use super::Retry;\n\nreasons! {\n",
    );
    for Declared { name, comment, number, about } in declared(proto) {
        for line in wrapped(&comment) {
            writeln!(table, "    /// {line}").expect("writing to a string succeeds");
        }
        writeln!(
            table,
            "    {} = {number}, {name:?}, {}, Retry::{}, {:?}, {:?};",
            camel(&name),
            code(&name, &about),
            retry(&name, &about),
            texts(&about, "metadata"),
            texts(&about, "optional_metadata"),
        )
        .expect("writing to a string succeeds");
    }
    table.push_str("}\n");
    table
}

/// Returns the table of the reasons for clients.
pub(crate) fn of_clients(proto: &Path) -> String {
    let mut table = String::from(
        "// Made by `make gen` from `proto/hive/v1/reason.proto`.\n\n\
         /// The reasons of refusals, each with the number of its gRPC code and whether the\n\
         /// identical request may succeed in a moment.\n\
         pub(crate) const REASONS: &[(&str, i32, bool)] = &[\n",
    );
    for Declared { name, about, .. } in declared(proto) {
        let is_soon = retry(&name, &about) == "Soon";
        writeln!(table, "    ({name:?}, {}, {is_soon}),", code(&name, &about))
            .expect("writing to a string succeeds");
    }
    table.push_str("];\n");
    table
}

/// Returns the comment of a value.
fn comment(reasons: &EnumDescriptor, place: usize) -> String {
    let file = reasons.parent_file();
    let file = file.file_descriptor_proto();
    let at = |index: usize| i32::try_from(index).expect("few items");
    let of_enum = file.enum_type.iter().position(|list| list.name() == reasons.name());
    let path = [5, at(of_enum.expect("it is in its file")), 2, at(place)];
    let info = file.source_code_info.as_ref().expect("compiled with comments");
    let location = info.location.iter().find(|location| location.path == path);
    location.expect("a comment").leading_comments().trim().to_owned()
}

fn wrapped(comment: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in comment.split_whitespace() {
        let line = lines.last_mut().expect("never empty");
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() <= COMMENT_COLUMNS {
            write!(line, " {word}").expect("writing to a string succeeds");
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

fn camel(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let (first, rest) = word.split_at(1);
        format!("{first}{}", rest.to_lowercase())
    });
    words.collect()
}

/// Returns the number of the gRPC code.
fn code(name: &str, options: &DynamicMessage) -> i32 {
    let code = options.get_field_by_name("code");
    let code = code.as_deref().and_then(Value::as_str).unwrap_or_default();
    let known = (1..=16).find(|number| {
        let known = format!("{:?}", tonic::Code::from_i32(*number));
        known.to_uppercase() == code.replace('_', "")
    });
    known.unwrap_or_else(|| panic!("{name}: {code:?} is no gRPC code"))
}

fn retry(name: &str, options: &DynamicMessage) -> String {
    let value = options.get_field_by_name("retry");
    let number = value.as_deref().and_then(Value::as_enum_number).unwrap_or_default();
    assert!(number != 0, "{name}: whether a retry helps is missing");
    let retry = options.descriptor().parent_file().enums().find(|list| list.name() == "Retry");
    let value = retry.and_then(|retry| retry.get_value(number)).expect("a value of the enum");
    camel(value.name().trim_start_matches("RETRY_"))
}

fn texts(options: &DynamicMessage, field: &str) -> Vec<String> {
    let value = options.get_field_by_name(field);
    let list = value.as_deref().and_then(Value::as_list).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
