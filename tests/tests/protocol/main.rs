//! The examples in the pages for authors of clients, each run as it is printed, against a real
//! `hived`.
//!
//! A block is a file with the name in its first line. `EXAMPLES` has the cases of each; a block
//! without a case fails a test, and so does a case without a block. Invariant: a case checks what
//! its example did in the hive, or what it printed about a refusal, besides its exit code.

mod generated;
mod go;
mod node;
mod pages;
mod python;
mod shell;
mod silent;
mod streams;
mod workshop;

/// Makes a test of each case, and the list of the examples that have one.
macro_rules! examples {
    ($($file:literal: $module:ident::$case:ident),* $(,)?) => {
        /// The examples with a case.
        const EXAMPLES: &[&str] = &[$($file),*];
        $(
            #[tokio::test]
            async fn $case() {
                $module::$case($file).await;
            }
        )*
    };
}

examples! {
    "python.sh": generated::python_code_is_generated,
    "node.sh": generated::types_are_generated,
    "go.sh": generated::go_code_is_generated,
    "mail.py": python::the_first_program_sends_receives_and_settles,
    "hive_client.py": python::a_call_waits_for_the_broker,
    "send.py": python::a_send_proves_its_turn_and_names_refusals,
    "consumer.py": streams::commands_settle_their_messages,
    "consumer.py": streams::leases_survive_the_broker,
    "consumer.py": streams::an_end_releases,
    "consumer.py": silent::pings_are_answered_and_lost_leases_end,
    "hive-client.mjs": node::a_call_of_node_waits_for_the_broker,
    "answer.mjs": node::a_question_is_answered_by_its_kind,
    "answer.mjs": node::a_turn_is_proven_and_refusals_have_details,
    "send-lines.mjs": streams::lines_arrive_in_order,
    "send-lines.mjs": streams::rates_and_lost_answers_lose_no_line,
    "main.go": go::the_program_sends_receives_and_settles,
    "ask.sh": shell::a_question_is_asked_once,
    "hive.sh": shell::calls_prove_their_turn_and_have_reasons,
    "receive.sh": shell::mail_is_settled,
}
