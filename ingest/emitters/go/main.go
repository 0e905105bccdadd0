// Command go shows how a Go program sends telemetry over HTTP: it plays 100 episodes, and posts each as a batch.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"time"
)

type object = map[string]any

// post sends a batch until the service has it in its topic. A batch that is sent again with the same id counts once.
func post(service, token, id string, batch []object) (answer struct{ Accepted, Refused int }) {
	body, _ := json.Marshal(batch)                   // finite numbers, texts and truth values
	client := http.Client{Timeout: 30 * time.Second} // the service answers within 25
	for pause := 1; ; time.Sleep(time.Duration(pause) * time.Second) {
		request, err := http.NewRequest(http.MethodPost, service+"/api/v1/telemetry", bytes.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		request.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {id}, "Authorization": {"Bearer " + token}}
		response, err := client.Do(request)
		if err != nil {
			continue // the service cannot be reached now
		}
		err = json.NewDecoder(response.Body).Decode(&answer)
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK && err == nil {
			return answer
		}
		if pause, _ = strconv.Atoi(response.Header.Get("Retry-After")); pause == 0 {
			log.Fatal(response.Status) // the batch is wrong, or the token
		}
	}
}

func main() {
	token, err := os.ReadFile(os.Getenv("REWARDWATCH_TOKEN_FILE"))
	if err != nil {
		log.Fatal(err)
	}
	sent, lost, run := 0, 0, rand.Uint64()
	for number := range 100 {
		id, batch := fmt.Sprintf("%x/%d", run, number), []object{}
		for step := range 10 {
			batch = append(batch, object{
				"policy": "walker-go", "agent_id": "go-1", "episode_id": id, "step": step, "ts": time.Now().UnixNano(),
				"action": []string{"left", "right"}[rand.IntN(2)], "reward": rand.NormFloat64(), "terminated": step == 9,
			})
		}
		answer := post(os.Args[1], string(bytes.TrimSpace(token)), id, batch)
		sent, lost = sent+answer.Accepted, lost+answer.Refused
	}
	fmt.Printf(`{"sent": {"walker-go": %d}, "lost": %d}`+"\n", sent, lost)
}
