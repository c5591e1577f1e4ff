//! The reasons of `proto/hive/v1/reason.proto`, written by `make gen`.

use super::Retry;

reasons! {
    /// A field of the request is not valid. `google.rpc.BadRequest` has the field and its fault.
    FieldInvalid = 1, "FIELD_INVALID", 3, Retry::Never, ["field"], [];
    /// There is no agent of that name.
    AgentNotFound = 2, "AGENT_NOT_FOUND", 5, Retry::Never, ["agent"], ["nearest"];
    /// The agent was retired.
    AgentRetired = 3, "AGENT_RETIRED", 5, Retry::Never, ["agent"], [];
    /// There is no such message, or the caller may not see it.
    MessageNotFound = 4, "MESSAGE_NOT_FOUND", 5, Retry::Never, ["message_id"], [];
    /// There is no such delivery.
    DeliveryNotFound = 5, "DELIVERY_NOT_FOUND", 5, Retry::Never, ["agent", "message_id"], [];
    /// There is no such question, or the caller may not see it.
    QuestionNotFound = 6, "QUESTION_NOT_FOUND", 5, Retry::Never, ["question_id"], [];
    /// There is no such reminder, or the caller may not see it.
    ReminderNotFound = 7, "REMINDER_NOT_FOUND", 5, Retry::Never, ["reminder_id"], [];
    /// There is no such turn, or the caller may not see it; or the agent has no open turn.
    TurnNotFound = 8, "TURN_NOT_FOUND", 5, Retry::Never, [], ["turn_id", "agent"];
    /// There is no such command.
    CommandNotFound = 9, "COMMAND_NOT_FOUND", 5, Retry::Never, ["command_id"], [];
    /// There is no such login dialogue, or it is over.
    LoginNotFound = 10, "LOGIN_NOT_FOUND", 5, Retry::Never, ["login_id"], [];
    /// The request id was used for another request.
    RequestIdReused = 11, "REQUEST_ID_REUSED", 6, Retry::Never, ["request_id"], [];
    /// There is an agent of that name already.
    AgentExists = 12, "AGENT_EXISTS", 6, Retry::Never, ["agent"], [];
    /// The sender's policy does not allow that recipient.
    RecipientNotAllowed = 13, "RECIPIENT_NOT_ALLOWED", 7, Retry::Never, ["recipient", "allowed"], [];
    /// The item belongs to another caller.
    NotYours = 14, "NOT_YOURS", 7, Retry::Never, [], ["question_id", "asker", "agent"];
    /// The question was put to another target.
    NotTheTarget = 15, "NOT_THE_TARGET", 7, Retry::Never, ["question_id", "target"], [];
    /// The agent is not the caller's direct child.
    NotYourChild = 16, "NOT_YOUR_CHILD", 7, Retry::Never, ["agent", "capability"], [];
    /// The call is for agents, and came from the operator's socket.
    NotAnAgent = 17, "NOT_AN_AGENT", 7, Retry::Never, [], [];
    /// The agent's policy lacks the right.
    CapabilityMissing = 18, "CAPABILITY_MISSING", 7, Retry::Never, [], ["tool_group", "capability"];
    /// The peer may not use this socket, or not for this call.
    PeerNotTrusted = 19, "PEER_NOT_TRUSTED", 7, Retry::Never, [], [];
    /// The lease is no longer the caller's.
    LeaseLost = 20, "LEASE_LOST", 9, Retry::Never, [], [];
    /// The session, or the session epoch of the turn, is no longer the agent's.
    SessionLost = 21, "SESSION_LOST", 9, Retry::Never, ["agent"], [];
    /// The calling process has no open turn.
    TurnEnded = 22, "TURN_ENDED", 9, Retry::Never, [], [];
    /// The session has an open turn.
    TurnOpen = 23, "TURN_OPEN", 9, Retry::Later, ["turn_id"], [];
    /// A harness serves the agent, and the call has no process token.
    HarnessAttached = 24, "HARNESS_ATTACHED", 9, Retry::Later, ["agent"], [];
    /// Another harness is attached.
    AlreadyAttached = 25, "ALREADY_ATTACHED", 9, Retry::Later, ["agent"], [];
    /// No harness is attached, or it does not answer.
    HarnessOffline = 26, "HARNESS_OFFLINE", 9, Retry::Later, ["agent"], [];
    /// A login dialogue with the agent is open already.
    LoginOpen = 27, "LOGIN_OPEN", 9, Retry::Later, ["agent"], [];
    /// The agent starts no turns for now.
    AgentParked = 28, "AGENT_PARKED", 9, Retry::Later, ["agent"], [];
    /// The operator stopped the agent.
    AgentStopped = 29, "AGENT_STOPPED", 9, Retry::Later, ["agent"], [];
    /// The directories of a purged agent of that name are not deleted yet.
    AgentPurging = 30, "AGENT_PURGING", 9, Retry::Later, ["agent"], [];
    /// The state of the delivery, of the reminder or of the schedule does not allow it.
    WrongState = 31, "WRONG_STATE", 9, Retry::Never, ["state"], ["agent", "message_id", "reminder_id", "schedule_id"];
    /// The question has its outcome already.
    QuestionClosed = 32, "QUESTION_CLOSED", 9, Retry::Never, ["question_id", "state"], ["closed_by"];
    /// The move would make an agent its own ancestor.
    TopologyCycle = 33, "TOPOLOGY_CYCLE", 9, Retry::Never, ["agent", "parent"], [];
    /// The status text is too long. `google.rpc.BadRequest` has the field.
    StatusTooLong = 34, "STATUS_TOO_LONG", 3, Retry::Never, ["field", "limit", "count"], [];
    /// The body, or the whole request, is too large. `google.rpc.BadRequest` has the field, if it
    /// is one.
    BodyTooLarge = 35, "BODY_TOO_LARGE", 3, Retry::Never, ["limit", "count"], ["field"];
    /// The recipient's inbox is full.
    InboxFull = 36, "INBOX_FULL", 8, Retry::Later, ["agent", "limit", "count"], [];
    /// The sender sends too fast.
    RateLimited = 37, "RATE_LIMITED", 8, Retry::Later, ["limit"], [];
    /// The sender has too many bytes waiting.
    StorageFull = 38, "STORAGE_FULL", 8, Retry::Later, ["limit", "count"], [];
    /// The asker has too many open questions.
    QuestionLimit = 39, "QUESTION_LIMIT", 8, Retry::Later, ["limit", "count"], [];
    /// The agent has too many pending reminders.
    ReminderLimit = 40, "REMINDER_LIMIT", 8, Retry::Later, ["limit", "count"], [];
    /// The socket has too many calls under way, or the agent too many streams of deliveries.
    CallLimit = 41, "CALL_LIMIT", 8, Retry::Soon, ["limit"], [];
    /// The broker does not know yet which sandbox belongs to the agent.
    Starting = 42, "STARTING", 14, Retry::Soon, [], [];
    /// The broker shuts down.
    Draining = 43, "DRAINING", 14, Retry::Soon, [], [];
    /// The database cannot be written now.
    StorageUnavailable = 44, "STORAGE_UNAVAILABLE", 14, Retry::Soon, [], [];
    /// A fault of the broker.
    Internal = 45, "INTERNAL", 13, Retry::Later, ["error_id"], [];
    /// The socket does not serve this method.
    MethodNotServed = 46, "METHOD_NOT_SERVED", 12, Retry::Never, ["method"], ["socket", "nearest"];
    /// The request is compressed.
    RequestCompressed = 47, "REQUEST_COMPRESSED", 12, Retry::Never, ["encoding"], [];
    /// A newer stream with the same id took the leases over.
    StreamReplaced = 48, "STREAM_REPLACED", 10, Retry::Never, ["stream_id"], [];
    /// The caller did not answer a ping of the stream in time. Open the stream again: its leases
    /// live on for the grace.
    StreamSilent = 49, "STREAM_SILENT", 10, Retry::Later, ["stream_id"], [];
    /// The agent, or its policy, is no longer the one that the request's etag stands for.
    EtagMismatch = 50, "ETAG_MISMATCH", 10, Retry::Never, ["agent", "etag"], [];
    /// The broker may not open as many files as the sockets of its agents need.
    SocketLimit = 51, "SOCKET_LIMIT", 8, Retry::Later, ["agent", "limit", "count"], [];
    /// Another launcher is attached.
    LauncherAttached = 52, "LAUNCHER_ATTACHED", 9, Retry::Later, [], [];
    /// No launcher is attached, or it does not answer with what was wanted of it.
    LauncherOffline = 53, "LAUNCHER_OFFLINE", 9, Retry::Later, [], [];
    /// Approving would change something else than what the digest stands for. Read the question
    /// again, and decide about what it shows now.
    DiffChanged = 54, "DIFF_CHANGED", 10, Retry::Never, ["question_id"], [];
    /// There is no such schedule, or the caller may not see it.
    ScheduleNotFound = 55, "SCHEDULE_NOT_FOUND", 5, Retry::Never, ["schedule_id"], [];
    /// The agent has too many schedules that have not ended.
    ScheduleLimit = 56, "SCHEDULE_LIMIT", 8, Retry::Later, ["limit", "count"], [];
}
