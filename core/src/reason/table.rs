//! The reasons of `proto/hive/v1/reason.proto`, written by `make gen`.

use super::Retry;

reasons! {
    /// A field of the request is not valid. `google.rpc.BadRequest` has the field and its fault.
    FieldInvalid = "FIELD_INVALID", 3, Retry::Never, ["field"], [];
    /// There is no agent of that name.
    AgentNotFound = "AGENT_NOT_FOUND", 5, Retry::Never, ["agent"], ["nearest"];
    /// The agent was retired.
    AgentRetired = "AGENT_RETIRED", 5, Retry::Never, ["agent"], [];
    /// There is no such message, or the caller may not see it.
    MessageNotFound = "MESSAGE_NOT_FOUND", 5, Retry::Never, ["message_id"], [];
    /// There is no such delivery.
    DeliveryNotFound = "DELIVERY_NOT_FOUND", 5, Retry::Never, ["agent", "message_id"], [];
    /// There is no such question, or the caller may not see it.
    QuestionNotFound = "QUESTION_NOT_FOUND", 5, Retry::Never, ["question_id"], [];
    /// There is no such reminder, or the caller may not see it.
    ReminderNotFound = "REMINDER_NOT_FOUND", 5, Retry::Never, ["reminder_id"], [];
    /// There is no such turn, or the caller may not see it; or the agent has no open turn.
    TurnNotFound = "TURN_NOT_FOUND", 5, Retry::Never, [], ["turn_id", "agent"];
    /// There is no such command.
    CommandNotFound = "COMMAND_NOT_FOUND", 5, Retry::Never, ["command_id"], [];
    /// There is no such login dialogue, or it is over.
    LoginNotFound = "LOGIN_NOT_FOUND", 5, Retry::Never, ["login_id"], [];
    /// The request id was used for another request.
    RequestIdReused = "REQUEST_ID_REUSED", 6, Retry::Never, ["request_id"], [];
    /// There is an agent of that name already.
    AgentExists = "AGENT_EXISTS", 6, Retry::Never, ["agent"], [];
    /// The sender's policy does not allow that recipient.
    RecipientNotAllowed = "RECIPIENT_NOT_ALLOWED", 7, Retry::Never, ["recipient", "allowed"], [];
    /// The item belongs to another caller.
    NotYours = "NOT_YOURS", 7, Retry::Never, [], ["question_id", "asker"];
    /// The question was put to another target.
    NotTheTarget = "NOT_THE_TARGET", 7, Retry::Never, ["question_id", "target"], [];
    /// The agent is not the caller's direct child.
    NotYourChild = "NOT_YOUR_CHILD", 7, Retry::Never, ["agent", "capability"], [];
    /// The call is for agents, and came from the operator's socket.
    NotAnAgent = "NOT_AN_AGENT", 7, Retry::Never, [], [];
    /// The agent's policy lacks the right.
    CapabilityMissing = "CAPABILITY_MISSING", 7, Retry::Never, ["tool_group"], [];
    /// The peer may not use this socket, or not for this call.
    PeerNotTrusted = "PEER_NOT_TRUSTED", 7, Retry::Never, [], [];
    /// The lease is no longer the caller's.
    LeaseLost = "LEASE_LOST", 9, Retry::Never, [], [];
    /// The session, or the session epoch of the turn, is no longer the agent's.
    SessionLost = "SESSION_LOST", 9, Retry::Never, ["agent"], [];
    /// The calling process has no open turn.
    TurnEnded = "TURN_ENDED", 9, Retry::Never, [], [];
    /// The session has an open turn.
    TurnOpen = "TURN_OPEN", 9, Retry::Later, ["turn_id"], [];
    /// A harness serves the agent, and the call has no process token.
    HarnessAttached = "HARNESS_ATTACHED", 9, Retry::Later, ["agent"], [];
    /// Another harness is attached.
    AlreadyAttached = "ALREADY_ATTACHED", 9, Retry::Later, ["agent"], [];
    /// No harness is attached, or it does not answer.
    HarnessOffline = "HARNESS_OFFLINE", 9, Retry::Later, ["agent"], [];
    /// A login dialogue with the agent is open already.
    LoginOpen = "LOGIN_OPEN", 9, Retry::Later, ["agent"], [];
    /// The agent starts no turns for now.
    AgentParked = "AGENT_PARKED", 9, Retry::Later, ["agent"], [];
    /// The operator stopped the agent.
    AgentStopped = "AGENT_STOPPED", 9, Retry::Later, ["agent"], [];
    /// The directories of a purged agent of that name are not deleted yet.
    AgentPurging = "AGENT_PURGING", 9, Retry::Later, ["agent"], [];
    /// The state of the delivery or of the reminder does not allow it.
    WrongState = "WRONG_STATE", 9, Retry::Never, ["state"], ["agent", "message_id", "reminder_id"];
    /// The question has its outcome already.
    QuestionClosed = "QUESTION_CLOSED", 9, Retry::Never, ["question_id", "state"], ["closed_by"];
    /// The move would make an agent its own ancestor.
    TopologyCycle = "TOPOLOGY_CYCLE", 9, Retry::Never, ["agent", "parent"], [];
    /// The status text is too long. `google.rpc.BadRequest` has the field.
    StatusTooLong = "STATUS_TOO_LONG", 3, Retry::Never, ["field", "limit", "count"], [];
    /// The body, or the whole request, is too large. `google.rpc.BadRequest` has the field, if it
    /// is one.
    BodyTooLarge = "BODY_TOO_LARGE", 3, Retry::Never, ["limit", "count"], ["field"];
    /// The recipient's inbox is full.
    InboxFull = "INBOX_FULL", 8, Retry::Later, ["agent", "limit", "count"], [];
    /// The sender sends too fast.
    RateLimited = "RATE_LIMITED", 8, Retry::Later, ["limit"], [];
    /// The sender has too many bytes waiting.
    StorageFull = "STORAGE_FULL", 8, Retry::Later, ["limit", "count"], [];
    /// The asker has too many open questions.
    QuestionLimit = "QUESTION_LIMIT", 8, Retry::Later, ["limit", "count"], [];
    /// The agent has too many pending reminders.
    ReminderLimit = "REMINDER_LIMIT", 8, Retry::Later, ["limit", "count"], [];
    /// The socket has too many calls under way.
    CallLimit = "CALL_LIMIT", 8, Retry::Soon, ["limit"], [];
    /// The broker does not know yet which sandbox belongs to the agent.
    Starting = "STARTING", 14, Retry::Soon, [], [];
    /// The broker shuts down.
    Draining = "DRAINING", 14, Retry::Soon, [], [];
    /// The database cannot be written now.
    StorageUnavailable = "STORAGE_UNAVAILABLE", 14, Retry::Soon, [], [];
    /// A fault of the broker.
    Internal = "INTERNAL", 13, Retry::Later, ["error_id"], [];
    /// The socket does not serve this method.
    MethodNotServed = "METHOD_NOT_SERVED", 12, Retry::Never, ["method"], ["socket", "nearest"];
    /// The request is compressed.
    RequestCompressed = "REQUEST_COMPRESSED", 12, Retry::Never, ["encoding"], [];
    /// A newer stream with the same id took the leases over.
    StreamReplaced = "STREAM_REPLACED", 10, Retry::Never, ["stream_id"], [];
    /// The caller did not answer a ping of the stream in time. Open the stream again: its leases
    /// live on for the grace.
    StreamSilent = "STREAM_SILENT", 10, Retry::Later, ["stream_id"], [];
    /// The agent, or its policy, is no longer the one that the request's etag stands for.
    EtagMismatch = "ETAG_MISMATCH", 10, Retry::Never, ["agent", "etag"], [];
}
