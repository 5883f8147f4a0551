// Package simagent is the simulated agent: a program that speaks like the claude command line
// agent and answers from a file; see nodes/agent/SIM.md for the files. It knows no node and no run.
package simagent

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"dagrun.dev/nodes"
)

// Variable names the environment variable with the path of a Work in JSON.
const Variable = "DAGRUN_SIM"

// A Work is what the simulated agent is told beside the prompt: who asks, and where its answers
// are. A real agent is told nothing of it.
type Work struct {
	Answers    string // file, relative to Dir
	Dir        string
	Faults     []Fault
	Delay      time.Duration
	Node       string
	Generation int
	Attempt    int
	Failures   int
	Labels     map[string]string
	Seed       int64
	Model      string
	System     string
	FirstLine  string // of every prompt, to be taken off
	MaxTurns   int
	Tools      []string
}

// label returns what a match may name.
func (w *Work) label(name string) string {
	switch name {
	case "node":
		return w.Node
	case "generation":
		return strconv.Itoa(w.Generation)
	case "attempt":
		return strconv.Itoa(w.Attempt)
	case "failures":
		return strconv.Itoa(w.Failures)
	}
	return w.Labels[name]
}

// Main is the command: it reads the prompt, answers, and returns the exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	prompt, err := io.ReadAll(stdin)
	var w *Work
	if err == nil {
		w, err = readWork()
	}
	if err != nil {
		fmt.Fprintln(stderr, "sim-agent:", err)
		return 1
	}
	a := &agent{Work: w, prompt: strings.TrimPrefix(string(prompt), w.FirstLine), out: stdout, err: stderr}
	a.dice = sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%d\x00%s", w.Seed, w.Node, w.Generation, a.prompt))
	return a.run()
}

func readWork() (*Work, error) {
	file := os.Getenv(Variable)
	if file == "" {
		return nil, fmt.Errorf("%s is not set; this command is started by a node of provider sim", Variable)
	}
	w := new(Work)
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, w)
	}
	return w, err
}

// An agent is one call.
type agent struct {
	*Work
	prompt string
	dice   [32]byte
	out    io.Writer
	err    io.Writer
}

func (a *agent) run() int {
	f := a.fault()
	if f != nil {
		if status, over := a.before(f); over {
			return status
		}
	}
	ans, err := a.answer()
	if err != nil {
		fmt.Fprintln(a.err, "sim-agent:", err)
		return 1
	}
	time.Sleep(ans.Delay)
	return a.speak(ans, f)
}

// An Answer is what is said, and what it is said to cost.
type Answer struct {
	Text    string
	Usage   nodes.Usage
	CostUSD float64
	Delay   time.Duration
}

// Dollars per million tokens where the answers name no cost.
const priceIn, priceOut = 3, 15

// answer returns the answer, and makes its files in the working folder, as an agent with tools would.
func (a *agent) answer() (*Answer, error) {
	entry, dir, err := a.find()
	if err != nil {
		return nil, err
	}
	env := &templates{agent: a, dir: dir}
	ans := &Answer{Delay: a.Delay}
	if ans.Text, err = env.render("answer", entry.Answer); entry.File != "" {
		ans.Text, err = env.include(entry.File)
	}
	if err != nil {
		return nil, err
	}
	names, texts := slices.Sorted(maps.Keys(entry.Write)), map[string]string{}
	for _, name := range names {
		if texts[name], err = env.render(name, entry.Write[name]); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		if err := nodes.PutIn(".", name, strings.NewReader(texts[name])); err != nil {
			return nil, err
		}
	}
	if entry.Delay != nil {
		ans.Delay = entry.Delay.D()
	}
	ans.Usage = nodes.Usage{Input: tokens(a.prompt), Output: tokens(ans.Text)}
	if entry.Usage != nil {
		ans.Usage = *entry.Usage
	}
	u := ans.Usage
	in := float64(u.Input+u.CacheWrite) + float64(u.CacheRead)/10
	ans.CostUSD = (in*priceIn + float64(u.Output)*priceOut) / 1e6
	if entry.CostUSD != nil {
		ans.CostUSD = *entry.CostUSD
	}
	return ans, nil
}

func tokens(s string) int64 { return int64(len(s)+3) / 4 }

// roll returns a number in [0, 1) that depends on the call and on salt only.
func (a *agent) roll(salt string) float64 { return draw(append(a.dice[:], salt...)) }

// draw returns a number in [0, 1) that follows from a text.
func draw(from []byte) float64 {
	sum := sha256.Sum256(from)
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}
