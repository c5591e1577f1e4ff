// Following the log of events. The position after the last step that was handed out goes into each
// reopened stream, so no event comes twice and none is missed without a Gap or a LogChanged.

package hive

import (
	"context"
	"iter"

	"example.invalid/hive/clients/go/hivev1"
)

// Position is a place in the log of events. The zero value is none.
type Position struct {
	// LogID is the identity of the log. A restored backup begins another one.
	LogID string
	// Sequence is the number of the last event before this place.
	Sequence uint64
}

// Step is a [Fact], a [Gap] or a [LogChanged].
type Step interface{ isStep() }

// Fact is an event. Its position is the one after it.
type Fact struct {
	Event    *hivev1.Event
	Position Position
}

// Gap states that events before the position were pruned. Read the state that you need again.
type Gap struct{ Position Position }

// LogChanged states that a backup was restored, so the position is in another log. Read the state
// that you need again.
type LogChanged struct{ Position Position }

func (Fact) isStep()       {}
func (Gap) isStep()        {}
func (LogChanged) isStep() {}

// FollowOptions say what to follow.
type FollowOptions struct {
	// After is the position of the last step that was seen. Without it the next event is the first.
	After Position
	// Agent limits the events to those of one agent.
	Agent string
}

// Follow returns the events of the log, one after the other, until ctx ends, the loop breaks off,
// or the broker refuses. The last pair of a loop that was not broken off has the error. Breaks of
// the connection do not end it.
func (h *Hive) Follow(ctx context.Context, options *FollowOptions) iter.Seq2[Step, error] {
	more := orDefault(options)
	return func(yield func(Step, error) bool) {
		position := more.After
		err := h.reopen(ctx, func(ctx context.Context, alive func()) error {
			request := &hivev1.WatchEventsRequest{Agent: more.Agent}
			if position.LogID != "" {
				after := position.Sequence
				request.LogId, request.AfterSequence = position.LogID, &after
			}
			stream, err := hivev1.NewEventServiceClient(h).WatchEvents(ctx, request)
			if err != nil {
				return err
			}
			for {
				watched, err := stream.Recv()
				if err != nil {
					return err
				}
				alive()
				for _, step := range position.advance(watched) {
					if !yield(step, nil) {
						return nil
					}
				}
			}
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

// advance moves the position behind what was received, and returns the steps that it has.
func (p *Position) advance(watched *hivev1.WatchEventsResponse) []Step {
	var steps []Step
	switch step := watched.GetStep().(type) {
	case *hivev1.WatchEventsResponse_Snapshot:
		log := step.Snapshot
		switch {
		case log.GetLogChanged():
			*p = Position{log.GetLogId(), log.GetLastSequence()}
			steps = append(steps, LogChanged{*p})
		case log.GetGap():
			*p = Position{log.GetLogId(), log.GetFirstSequence() - 1}
			steps = append(steps, Gap{*p})
		case p.LogID == "":
			*p = Position{log.GetLogId(), log.GetLastSequence()}
		}
	case *hivev1.WatchEventsResponse_Batch:
		for _, event := range step.Batch.GetEvents() {
			steps = append(steps, Fact{event, Position{p.LogID, event.GetSequence()}})
		}
		p.Sequence = step.Batch.GetSequence()
	case *hivev1.WatchEventsResponse_Progress:
		*p = Position{step.Progress.GetLogId(), step.Progress.GetSequence()}
	}
	return steps
}
