//! `hivectl search`: the words of messages and questions.

use clap::Args;
use hive_proto::v1::SearchMessagesRequest;

use crate::complete;
use crate::context::Context;
use crate::error::Failure;
use crate::output::note;
use crate::view::hit::Hit;
use crate::view::search_words::SearchWords;

/// Hits of one page; the most that the broker gives.
const PAGE_HITS: u32 = 50;

/// Search the words of messages and questions, newest first.
///
/// All words must occur; upper and lower case and accents make no difference. `"a phrase"` in
/// double quotes must occur literally (the shell needs quotes around them), `wor*` finds every word
/// with that beginning. A new message is found within a second.
#[derive(Args, Debug)]
pub(crate) struct Search {
    /// The words
    #[arg(required = true, value_name = "WORD")]
    words: Vec<String>,
    /// Only messages that this agent sent or received, and questions that it asked or was asked
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true, add = complete::agents_and_operator())]
    agent: String,
    /// At most this many
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
}

impl Search {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        let query = self.words.join(" ");
        let words = SearchWords::parse(&query);
        let limit = self.limit as usize;
        let mut hits = Vec::new();
        let mut page_token = String::new();
        let more = loop {
            let left = u32::try_from(limit - hits.len()).unwrap_or(u32::MAX);
            let request = SearchMessagesRequest {
                query: query.clone(),
                page_size: left.min(PAGE_HITS),
                page_token,
                agent: self.agent.clone(),
            };
            let page = broker.read(broker.messages().search_messages(request)).await?;
            // A kind of hit that this version does not know is left out.
            let known = page.hits.into_iter().filter_map(|hit| hit.hit);
            hits.extend(known.take(limit - hits.len()).map(|hit| Hit::new(hit, words.clone())));
            page_token = page.next_page_token;
            if page_token.is_empty() || hits.len() == limit {
                break !page_token.is_empty();
            }
        };
        if hits.is_empty() && !context.out.json {
            note("nothing found");
        }
        context.out.each(&hits)?;
        if more && !context.out.json {
            note(&format!("these are the newest {}; there is more: --limit shows it", self.limit));
        }
        Ok(())
    }
}
