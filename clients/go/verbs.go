// The verbs that are one call each. Every error is an [*Error].

package hive

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"example.invalid/hive/clients/go/hivev1"
)

// Recipient is the name of an agent, or one of the constants. No agent has a name that begins with
// "@".
type Recipient string

const (
	// Operator is the operator of the hive.
	Operator Recipient = "@operator"
	// Parent is the parent of the calling agent.
	Parent Recipient = "@parent"
	// Everyone is every active agent but the caller.
	Everyone Recipient = "@everyone"
)

func (r Recipient) proto() *hivev1.Recipient {
	to := &hivev1.Recipient{To: &hivev1.Recipient_Agent{Agent: string(r)}}
	switch r {
	case Operator:
		to.To = &hivev1.Recipient_Operator{Operator: &hivev1.OperatorRecipient{}}
	case Parent:
		to.To = &hivev1.Recipient_Parent{Parent: &hivev1.ParentRecipient{}}
	case Everyone:
		to.To = &hivev1.Recipient_Everyone{Everyone: &hivev1.EveryoneRecipient{}}
	}
	return to
}

// SendOptions are the optional parts of a message.
type SendOptions struct {
	// InReplyTo is the message that this one answers; 0 for none.
	InReplyTo uint64
	// RequestID is the idempotency key; empty for a new one.
	RequestID string
}

// Send sends a message, and returns once it is on the broker's disk.
func (h *Hive) Send(ctx context.Context, to Recipient, body string, options *SendOptions) (
	*hivev1.SendMessageResponse, error,
) {
	more := orDefault(options)
	return hivev1.NewMessageServiceClient(h).SendMessage(ctx, &hivev1.SendMessageRequest{
		RequestId: more.RequestID,
		To:        to.proto(),
		Body:      body,
		InReplyTo: more.InReplyTo,
	})
}

// AnswerOptions are the optional parts of an answer.
type AnswerOptions struct {
	// Choices are options of the question, word for word.
	Choices []string
	// RequestID is the idempotency key; empty for a new one.
	RequestID string
}

// Answer answers a question with a text, choices or both, and returns the closed question.
func (h *Hive) Answer(ctx context.Context, questionID uint64, text string, options *AnswerOptions) (
	*hivev1.Question, error,
) {
	more := orDefault(options)
	answered, err := hivev1.NewQuestionServiceClient(h).AnswerQuestion(ctx,
		&hivev1.AnswerQuestionRequest{
			RequestId:  more.RequestID,
			QuestionId: questionID,
			Choices:    more.Choices,
			Text:       text,
		})
	return answered.GetQuestion(), err
}

// RemindOptions are the optional parts of a reminder.
type RemindOptions struct {
	// RequestID is the idempotency key; empty for a new one.
	RequestID string
}

// Remind sets a reminder of the calling agent to itself, due after a delay of 1 s to 3,660 days.
func (h *Hive) Remind(
	ctx context.Context, body string, delay time.Duration, options *RemindOptions,
) (*hivev1.Reminder, error) {
	return h.remind(ctx, options, &hivev1.CreateReminderRequest{
		Body: body,
		Due:  &hivev1.CreateReminderRequest_Delay{Delay: durationpb.New(delay)},
	})
}

// RemindAt sets a reminder of the calling agent to itself, due at a time of the wall clock.
func (h *Hive) RemindAt(ctx context.Context, body string, due time.Time, options *RemindOptions) (
	*hivev1.Reminder, error,
) {
	return h.remind(ctx, options, &hivev1.CreateReminderRequest{
		Body: body,
		Due:  &hivev1.CreateReminderRequest_DueTime{DueTime: timestamppb.New(due)},
	})
}

func (h *Hive) remind(
	ctx context.Context, options *RemindOptions, request *hivev1.CreateReminderRequest,
) (*hivev1.Reminder, error) {
	request.RequestId = orDefault(options).RequestID
	set, err := hivev1.NewReminderServiceClient(h).CreateReminder(ctx, request)
	return set.GetReminder(), err
}

// WakeOptions are the optional parts of a message of a co-process.
type WakeOptions struct {
	// CoalescingKey makes the message supersede an undelivered one of the same label and key.
	CoalescingKey string
	// RequestID is the idempotency key; empty for a new one.
	RequestID string
}

// Wake sends the socket's own agent a message of the co-process with this label.
func (h *Hive) Wake(ctx context.Context, label, body string, options *WakeOptions) (
	*hivev1.WakeResponse, error,
) {
	more := orDefault(options)
	return hivev1.NewWakeServiceClient(h).Wake(ctx, &hivev1.WakeRequest{
		RequestId:     more.RequestID,
		Label:         label,
		Body:          body,
		CoalescingKey: more.CoalescingKey,
	})
}

// Publish replaces the loose ends that the co-process with this label has published for its agent.
// Without entries it clears them.
func (h *Hive) Publish(ctx context.Context, label string, entries []*hivev1.PublishedLooseEnd) error {
	_, err := hivev1.NewLooseEndServiceClient(h).ReplaceLooseEnds(ctx,
		&hivev1.ReplaceLooseEndsRequest{Label: label, LooseEnds: entries})
	return err
}
