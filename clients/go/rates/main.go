// The program rates measures the kit, or the generated client alone, for
// `make bench WORKLOADS=kits`.
//
//	rates kit|generated send|receive SOCKET AGENT COUNT WINDOW
//
// It sends COUNT messages to the agent, or takes and acks as many of its mail, with at most WINDOW
// of them under way, and prints the seconds that it took. A tenth of COUNT goes before, and does
// not count.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"example.invalid/hive/clients/go"
	"example.invalid/hive/clients/go/hivev1"
)

var body = strings.Repeat("x", 200)

// clock notes when the counted part begins and ends.
type clock struct {
	begin, end int64
	done       atomic.Int64
	started    time.Time
	stopped    chan time.Duration
}

func newClock(count int64) *clock {
	return &clock{begin: count / 10, end: count/10 + count, stopped: make(chan time.Duration, 1)}
}

func (c *clock) tick() {
	switch c.done.Add(1) {
	case c.begin:
		c.started = time.Now()
	case c.end:
		c.stopped <- time.Since(c.started)
	}
}

// send does one of the sends again and again, in window goroutines.
func send(c *clock, window int, one func() error) error {
	var turns atomic.Int64
	var workers sync.WaitGroup
	failures := make(chan error, window)
	for range window {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for turns.Add(1) <= c.end {
				if err := one(); err != nil {
					failures <- err
					return
				}
				c.tick()
			}
		}()
	}
	workers.Wait()
	close(failures)
	return <-failures
}

func kit(work, socket, agent string, c *clock, window int) error {
	ctx := context.Background()
	h, err := hive.Connect(socket, nil)
	if err != nil {
		return err
	}
	defer h.Close()
	if work == "send" {
		return send(c, window, func() error {
			_, err := h.Send(ctx, hive.Recipient(agent), body, nil)
			return err
		})
	}
	mail := h.Mail(ctx, &hive.MailOptions{Window: uint32(window)})
	return mail.Each(func(ctx context.Context, delivery *hive.Delivery) error {
		if _, err := delivery.Ack(ctx); err != nil {
			return err
		}
		if c.tick(); c.done.Load() == c.end {
			go mail.Close()
		}
		return nil
	})
}

func generated(work, socket, agent string, c *clock, window int) error {
	ctx := context.Background()
	conn, err := grpc.Dial("unix:"+socket, grpc.WithInsecure(), grpc.WithAuthority("localhost"))
	if err != nil {
		return err
	}
	defer conn.Close()
	series, ids := fmt.Sprint(time.Now().UnixNano()), atomic.Int64{}
	newID := func() string { return fmt.Sprintf("%s-%d", series, ids.Add(1)) }
	if work == "send" {
		messages := hivev1.NewMessageServiceClient(conn)
		to := &hivev1.Recipient{To: &hivev1.Recipient_Agent{Agent: agent}}
		return send(c, window, func() error {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			_, err := messages.SendMessage(ctx, &hivev1.SendMessageRequest{
				RequestId: newID(), To: to, Body: body,
			})
			return err
		})
	}
	stream, err := hivev1.NewInboxServiceClient(conn).StreamDeliveries(ctx)
	if err != nil {
		return err
	}
	opening := &hivev1.OpenDeliveries{
		StreamId: newID(), Window: &hivev1.DeliveryWindow{Deliveries: uint32(window)},
	}
	open := &hivev1.StreamDeliveriesRequest_Open{Open: opening}
	if err := stream.Send(&hivev1.StreamDeliveriesRequest{Step: open}); err != nil {
		return err
	}
	for c.done.Load() < c.end {
		step, err := stream.Recv()
		if err != nil {
			return err
		}
		for _, result := range step.GetSettled().GetResults() {
			if result.GetState() != hivev1.DeliveryState_DELIVERY_STATE_ACKED {
				return fmt.Errorf("not acked: %v", result)
			}
			c.tick()
		}
		if step.GetLeased() == nil {
			continue
		}
		settle := &hivev1.SettleDeliveriesRequest{}
		for _, lease := range step.GetLeased().GetDeliveries() {
			settle.Settlements = append(settle.Settlements, &hivev1.Settlement{
				Target: &hivev1.Settlement_LeaseToken{LeaseToken: lease.GetLeaseToken()},
				Action: &hivev1.Settlement_Ack{Ack: &hivev1.Ack{}},
			})
		}
		if err := stream.Send(&hivev1.StreamDeliveriesRequest{
			Step: &hivev1.StreamDeliveriesRequest_Settle{Settle: settle},
		}); err != nil {
			return err
		}
	}
	return stream.CloseSend()
}

func run(arguments []string) error {
	if len(arguments) != 6 {
		return fmt.Errorf("usage: rates kit|generated send|receive SOCKET AGENT COUNT WINDOW")
	}
	count, err := strconv.ParseInt(arguments[4], 10, 64)
	if err != nil {
		return err
	}
	window, err := strconv.Atoi(arguments[5])
	if err != nil {
		return err
	}
	way, c := kit, newClock(count)
	if arguments[0] == "generated" {
		way = generated
	}
	if err := way(arguments[1], arguments[2], arguments[3], c, window); err != nil {
		return err
	}
	fmt.Println((<-c.stopped).Seconds())
	return nil
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}
