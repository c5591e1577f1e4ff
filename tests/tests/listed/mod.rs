//! The reasons that the comments of the RPCs list, as the `.proto` files have them.

use hive_core::reason::Reason;
use prost_types::FileDescriptorProto;

/// Reasons with which any call may end. The comment of an RPC need not list them. Two are among
/// them in one sense only: AGENT_RETIRED about the caller, BODY_TOO_LARGE about the whole request.
pub(crate) const ANY_CALL: [Reason; 10] = [
    Reason::MethodNotServed,
    Reason::RequestCompressed,
    Reason::Starting,
    Reason::PeerNotTrusted,
    Reason::CapabilityMissing,
    Reason::CallLimit,
    Reason::BodyTooLarge,
    Reason::AgentRetired,
    Reason::StorageUnavailable,
    Reason::Internal,
];

/// Returns the files of `hive.v1`, with their comments.
pub(crate) fn compiled() -> Vec<FileDescriptorProto> {
    let proto = hive_tests::binary::workspace().join("proto");
    let mut files: Vec<_> = std::fs::read_dir(proto.join("hive/v1"))
        .expect("the contract is readable")
        .map(|entry| entry.expect("a directory entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "proto"))
        .collect();
    files.sort();
    let mut compiler = protox::Compiler::new([&proto]).expect("proto/ is an include path");
    compiler.include_source_info(true).include_imports(false);
    compiler.open_files(&files).expect("the contract compiles");
    let files = compiler.file_descriptor_set().file;
    files.into_iter().filter(|file| file.package() == "hive.v1").collect()
}

/// Returns the comment of an item of a file.
pub(crate) fn comment(file: &FileDescriptorProto, path: &[i32]) -> String {
    let info = file.source_code_info.as_ref().expect("compiled with comments");
    let location = info.location.iter().find(|location| location.path == path);
    location.map(|location| location.leading_comments().trim().to_owned()).unwrap_or_default()
}

/// Returns the number of an item in a path.
pub(crate) fn at(index: usize) -> i32 {
    i32::try_from(index).expect("few items")
}

/// Returns the words in the line `Reasons: …` of a comment; an empty list for `none`. An error:
/// there is no such line, or it names nothing.
pub(crate) fn words(comment: &str) -> Result<Vec<&str>, &'static str> {
    let (_, list) = comment.split_once("Reasons:").ok_or("no line `Reasons: ...`")?;
    let words = list.split(|c: char| !c.is_ascii_uppercase() && c != '_');
    let words: Vec<&str> = words.filter(|word| word.len() > 2).collect();
    if words.is_empty() && list.trim().trim_end_matches('.') != "none" {
        return Err("`Reasons:` names nothing; write `Reasons: none.`");
    }
    Ok(words)
}
