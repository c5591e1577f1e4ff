//! The page of RPCs, from the broker's table of methods.

use std::fmt::Write as _;

use hive_broker::rpc::method::{Class, METHODS, Method, Size};
use hive_core::limits::{
    ANSWER_BYTES_MAX, QUESTION_BYTES_MAX, REQUEST_BYTES_MAX, REQUEST_FIELDS_BYTES_MAX,
    REQUEST_LIST_BYTES_MAX,
};

pub(crate) fn page() -> String {
    let mut page = format!(
        "# RPCs\n\n\
        Which sockets serve an RPC, how long a request may be on an agent's socket, and when a call stops to count as \"at work\". Four calls of one \
        agent's socket are at work at once, 64 of the operator's; the others queue. A call that works for longer than 20 ms stops to count, whatever its \
        class. On the operator's socket pages are short calls.\n\n\
        | class | counts until |\n| --- | --- |\n\
        | short | it is answered |\n\
        | page | it is answered; the next page of the same agent waits until it has been read, or 20 ms |\n\
        | long poll | it waits, and 10 ms have passed |\n\
        | stream | it is open |\n\
        | watch | as a page, because it begins with one |\n\
        | client stream | its first message is accepted, and 10 ms have passed |\n\
        | job | it is admitted, and 10 ms have passed |\n\n\
        | request | largest message |\n| --- | --- |\n\
        | plain | {REQUEST_BYTES_MAX} bytes |\n\
        | body | the limit of a body, and {REQUEST_FIELDS_BYTES_MAX} bytes |\n\
        | question | {REQUEST_BYTES_MAX} bytes, the question {QUESTION_BYTES_MAX} |\n\
        | answer | {REQUEST_BYTES_MAX} bytes, the answer {ANSWER_BYTES_MAX} |\n\
        | list | {REQUEST_LIST_BYTES_MAX} bytes |\n\n\
        | RPC | sockets | class | request | changes the database |\n| --- | --- | --- | --- | --- |\n"
    );
    for method in METHODS {
        let Method { path, class, size, mutates, .. } = method;
        let (class, size) = (class_name(*class), size_name(*size));
        let changes = if *mutates { "yes" } else { "no" };
        writeln!(page, "| `{path}` | {} | {class} | {size} | {changes} |", sockets(method))
            .expect("writing to a string succeeds");
    }
    page
}

fn sockets(method: &Method) -> &'static str {
    match (method.agent, method.operator) {
        (true, true) => "agent, operator",
        (true, false) => "agent",
        (false, _) => "operator",
    }
}

fn class_name(class: Class) -> &'static str {
    match class {
        Class::Short => "short",
        Class::Page => "page",
        Class::LongPoll => "long poll",
        Class::Stream => "stream",
        Class::Watch => "watch",
        Class::ClientStream => "client stream",
        Class::Job => "job",
    }
}

fn size_name(size: Size) -> &'static str {
    match size {
        Size::Plain => "plain",
        Size::Body => "body",
        Size::Question => "question",
        Size::Answer => "answer",
        Size::List => "list",
    }
}
