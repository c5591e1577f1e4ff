// What is worth an alert, and what the alert says.

package main

import (
	"fmt"
	"strings"
	"time"

	"example.invalid/hive/clients/go"
	"example.invalid/hive/clients/go/hivev1"
)

// alert is one of Alertmanager's. Its labels identify it: a double has the same ones.
type alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
}

// look returns the position after a step, and its alert if it is worth one.
func look(step hive.Step) (hive.Position, *alert) {
	switch step := step.(type) {
	case hive.Fact:
		return step.Position, lookAt(step.Event)
	case hive.Gap:
		return step.Position, lost("HiveEventsLost", step.Position, "events were deleted before they were read")
	case hive.LogChanged:
		return step.Position, lost("HiveLogChanged", step.Position, "a backup was restored")
	}
	return hive.Position{}, nil // there is no other type of step
}

// lookAt returns the alert of an event; nil for one that is not worth any.
func lookAt(event *hivev1.Event) *alert {
	at := func(name, summary string, labels ...string) *alert {
		a := newAlert(name, summary, append(labels, "agent", event.GetAgent())...)
		a.Annotations["event"] = fmt.Sprint(event.GetSequence())
		if event.GetDetail() != "" {
			a.Annotations["detail"] = event.GetDetail()
		}
		a.StartsAt = event.GetTime().AsTime()
		return a
	}
	switch event.GetKind() {
	case hivev1.EventKind_EVENT_KIND_DELIVERY_DEAD:
		dead := event.GetDeliveryDead()
		cause := name(dead.GetCause(), "REDELIVERY_CAUSE_")
		summary := fmt.Sprintf("message %d to %s is a dead letter after attempt %d: %s",
			event.GetMessageId(), event.GetAgent(), dead.GetAttempt(), cause)
		return at("HiveDeadLetter", summary, "cause", cause, "message", fmt.Sprint(event.GetMessageId()))
	case hivev1.EventKind_EVENT_KIND_AGENT_PARKED:
		parked := event.GetAgentParked()
		cause, until := name(parked.GetCause(), "TURN_OUTCOME_"), "a login"
		if parked.GetUntilTime() != nil {
			until = parked.GetUntilTime().AsTime().Format(time.RFC3339)
		}
		summary := fmt.Sprintf("%s is parked until %s: %s", event.GetAgent(), until, cause)
		return at("HiveAgentParked", summary, "cause", cause)
	case hivev1.EventKind_EVENT_KIND_TURN_ENDED:
		outcome := event.GetTurnEnded().GetOutcome()
		if isFine(outcome) {
			return nil
		}
		cause := name(outcome, "TURN_OUTCOME_")
		summary := fmt.Sprintf("turn %d of %s ended: %s", event.GetTurnId(), event.GetAgent(), cause)
		return at("HiveTurnFailed", summary, "cause", cause, "turn", fmt.Sprint(event.GetTurnId()))
	}
	return nil
}

// isFine returns whether a turn ended well, or because a person or the hive ended it. An outcome
// that this program does not know is an error.
func isFine(outcome hivev1.TurnOutcome) bool {
	switch outcome {
	case hivev1.TurnOutcome_TURN_OUTCOME_OK, hivev1.TurnOutcome_TURN_OUTCOME_CANCELLED,
		hivev1.TurnOutcome_TURN_OUTCOME_DRAINED, hivev1.TurnOutcome_TURN_OUTCOME_FENCED:
		return true
	}
	return false
}

// lost returns the alert that events are missing: dead letters may be among them.
func lost(name string, position hive.Position, why string) *alert {
	a := newAlert(name, why+": see hivectl dead-letters and hivectl status", "log", position.LogID)
	a.Annotations["event"] = fmt.Sprint(position.Sequence)
	a.StartsAt = time.Now()
	return a
}

func newAlert(name, summary string, labels ...string) *alert {
	a := &alert{
		Labels:      map[string]string{"alertname": name},
		Annotations: map[string]string{"summary": summary},
	}
	for i := 0; i < len(labels); i += 2 {
		a.Labels[labels[i]] = labels[i+1]
	}
	return a
}

// name returns the name of a value of an enum without its prefix; a number if it has none.
func name(value fmt.Stringer, prefix string) string {
	return strings.TrimPrefix(value.String(), prefix)
}
