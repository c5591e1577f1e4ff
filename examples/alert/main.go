// Command alert follows the events of a hive and posts an alert for each one that needs a person.
//
// Invariant: the stored position is not past an alert that was not accepted.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"example.invalid/hive/clients/go"
	"example.invalid/hive/clients/go/hivev1"
)

const (
	answerMax    = 10 * time.Second
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
	// Events without an alert move the stored position at most this often: a write costs a sync.
	quietStores = 10 * time.Second
)

func main() {
	log.SetFlags(0)
	target := flag.String("url", "", "where alerts are posted, such as http://localhost:9093/api/v2/alerts")
	state := flag.String("state", "", "the file that has the position in the log of events")
	flag.Parse()
	receiver, err := url.Parse(*target)
	if err != nil || receiver.Host == "" || *state == "" || flag.NArg() > 0 {
		log.Print("alert: -url needs the URL of a receiver, and -state the path of a file")
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := watch(ctx, receiver.String(), *state); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal("alert: ", err)
	}
}

// watch posts alerts until ctx ends or the broker refuses.
func watch(ctx context.Context, receiver, state string) error {
	h, err := hive.Connect("", &hive.Options{Program: "hive-example-alert"})
	if err != nil {
		return err
	}
	defer h.Close()
	position, err := load(state)
	if errors.Is(err, os.ErrNotExist) {
		// The first start begins at the end of the log.
		if position, err = newest(ctx, h); err == nil {
			err = store(state, position)
		}
	}
	if err != nil {
		return err
	}
	log.Printf("watching log %s after event %d", position.LogID, position.Sequence)
	stored := time.Now()
	for step, err := range h.Follow(ctx, &hive.FollowOptions{After: position}) {
		if err != nil {
			if failure := store(state, position); failure != nil {
				return failure
			}
			return err
		}
		next, found := look(step)
		if found != nil {
			if err := post(ctx, receiver, found); err != nil {
				return err // position is still before this alert
			}
		}
		position = next
		if found != nil || time.Since(stored) > quietStores {
			if err := store(state, position); err != nil {
				return err
			}
			stored = time.Now()
		}
	}
	return nil
}

// newest returns the end of the log.
func newest(ctx context.Context, h *hive.Hive) (hive.Position, error) {
	page, err := hivev1.NewEventServiceClient(h).ListEvents(ctx, &hivev1.ListEventsRequest{PageSize: 1})
	return hive.Position{LogID: page.GetLogId(), Sequence: page.GetLastSequence()}, err
}

// post sends an alert until the receiver accepts it; the error is that of ctx.
func post(ctx context.Context, receiver string, a *alert) error {
	body, err := json.Marshal([]*alert{a})
	if err != nil {
		return err
	}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := try(ctx, receiver, body)
		if err == nil {
			log.Print("posted ", a.Labels["alertname"], ": ", a.Annotations["summary"])
			return nil
		}
		log.Printf("the receiver did not accept %s: %v", a.Labels["alertname"], err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

func try(ctx context.Context, receiver string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, answerMax)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, receiver, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		said, _ := io.ReadAll(io.LimitReader(answer.Body, 200))
		return fmt.Errorf("%s: %s", answer.Status, bytes.TrimSpace(said))
	}
	return nil
}
