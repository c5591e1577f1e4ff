// Questions and their outcomes. A question has exactly one outcome, however often it is read.

package hive

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"example.invalid/hive/clients/go/hivev1"
)

// AskOptions are the optional parts of a question.
type AskOptions struct {
	// Options are the offered answers; a free text is allowed as well.
	Options []string
	// Multi allows several options.
	Multi bool
	// TTL is the time after which the question expires, 1 s to 366 days; 0 for never.
	TTL time.Duration
	// RequestID is the idempotency key; empty for a new one.
	RequestID string
}

// Asked is a question that is on the broker's disk.
type Asked struct {
	// Question is the question as it was when it was asked.
	Question *hivev1.Question

	hive *Hive
}

// Ask asks an agent, the operator or the parent. It does not wait for the answer: see
// [Asked.Outcome].
func (h *Hive) Ask(ctx context.Context, to Recipient, text string, options *AskOptions) (
	*Asked, error,
) {
	more := orDefault(options)
	request := &hivev1.AskQuestionRequest{
		RequestId: more.RequestID,
		To:        to.proto(),
		Text:      text,
		Options:   more.Options,
		Multi:     more.Multi,
	}
	if more.TTL != 0 {
		request.Ttl = durationpb.New(more.TTL)
	}
	asked, err := hivev1.NewQuestionServiceClient(h).AskQuestion(ctx, request)
	if err != nil {
		return nil, err
	}
	return &Asked{Question: asked.GetQuestion(), hive: h}, nil
}

// Outcome waits until the question is closed (answered, expired or cancelled), and returns it. It
// waits as long as ctx allows, over restarts of the broker.
func (a *Asked) Outcome(ctx context.Context) (*hivev1.Question, error) {
	var outcome *hivev1.Question
	request := &hivev1.WatchQuestionsRequest{QuestionId: a.Question.GetId()}
	err := a.hive.reopen(ctx, func(ctx context.Context, alive func()) error {
		stream, err := hivev1.NewQuestionServiceClient(a.hive).WatchQuestions(ctx, request)
		if err != nil {
			return err
		}
		for {
			step, err := stream.Recv()
			if err != nil {
				return err
			}
			alive()
			listed, changed := step.GetSnapshot().GetQuestions(), step.GetBatch().GetQuestions()
			for _, question := range append(listed, changed...) { // one of them is empty
				if question.GetState() != hivev1.QuestionState_QUESTION_STATE_OPEN {
					outcome = question
					return nil
				}
			}
		}
	})
	return outcome, err
}
