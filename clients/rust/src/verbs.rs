//! The verbs of a client, each a call with its usual arguments. [`Hive::call`] takes any request,
//! with all of its fields.

use std::time::Duration;

use crate::error::Error;
use crate::hive::Hive;
use crate::v1::create_reminder_request::Due;
use crate::v1::recipient::To;
use crate::v1::{
    AnswerQuestionRequest, CreateReminderRequest, EveryoneRecipient, OperatorRecipient,
    ParentRecipient, PublishedLooseEnd, Question, Recipient, Reminder, ReplaceLooseEndsRequest,
    SendMessageRequest, SendMessageResponse, WakeRequest, WakeResponse,
};

impl Recipient {
    /// Returns the operator.
    #[must_use]
    pub fn operator() -> Self {
        Self { to: Some(To::Operator(OperatorRecipient {})) }
    }

    /// Returns the parent of the sender.
    #[must_use]
    pub fn parent() -> Self {
        Self { to: Some(To::Parent(ParentRecipient {})) }
    }

    /// Returns every agent but the sender.
    #[must_use]
    pub fn everyone() -> Self {
        Self { to: Some(To::Everyone(EveryoneRecipient {})) }
    }
}

/// The agent of this name.
impl From<&str> for Recipient {
    fn from(agent: &str) -> Self {
        Self { to: Some(To::Agent(agent.to_owned())) }
    }
}

impl Hive {
    /// Sends a message; returns the receipt when the message is on disk.
    pub async fn send(
        &self,
        to: impl Into<Recipient>,
        body: impl Into<String>,
    ) -> Result<SendMessageResponse, Error> {
        let (to, body) = (Some(to.into()), body.into());
        self.call(SendMessageRequest { to, body, ..Default::default() }).await
    }

    /// Answers a question with a text. For options, call with an [`AnswerQuestionRequest`].
    pub async fn answer(
        &self,
        question_id: u64,
        text: impl Into<String>,
    ) -> Result<Question, Error> {
        let text = text.into();
        let request = AnswerQuestionRequest { question_id, text, ..Default::default() };
        Ok(self.call(request).await?.question.unwrap_or_default())
    }

    /// Reminds the agent of this socket, by mail, after a delay.
    pub async fn remind(
        &self,
        body: impl Into<String>,
        delay: Duration,
    ) -> Result<Reminder, Error> {
        let due = delay.try_into().ok().map(Due::Delay);
        let request = CreateReminderRequest { body: body.into(), due, ..Default::default() };
        Ok(self.call(request).await?.reminder.unwrap_or_default())
    }

    /// Sends mail to the agent of this socket, as a program beside it with this label. A new wake
    /// replaces one with the same coalescing key that was not delivered; empty: no key.
    pub async fn wake(
        &self,
        label: impl Into<String>,
        body: impl Into<String>,
        coalescing_key: impl Into<String>,
    ) -> Result<WakeResponse, Error> {
        let (label, body) = (label.into(), body.into());
        let coalescing_key = coalescing_key.into();
        self.call(WakeRequest { label, body, coalescing_key, ..Default::default() }).await
    }

    /// Publishes what the agent of this socket must not forget, as a program beside it with this
    /// label. It replaces all that was published under the label.
    pub async fn publish(
        &self,
        label: impl Into<String>,
        loose_ends: Vec<PublishedLooseEnd>,
    ) -> Result<(), Error> {
        let label = label.into();
        let request = ReplaceLooseEndsRequest { label, loose_ends, ..Default::default() };
        self.call(request).await.map(|_| ())
    }
}
