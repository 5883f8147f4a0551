package eventlog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/regular"
)

// A Holder describes the process that holds a lock.
type Holder struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	BootID  string    `json:"boot_id,omitempty"`
	Birth   string    `json:"birth,omitempty"` // ticks from boot to its start: tells it from a later process of its pid
	Started time.Time `json:"started"`         // when the lock was taken
	Command string    `json:"command,omitempty"`
}

// A Lock is held on a run directory by its one writer. The kernel's lock on the open file decides;
// the file's content says who it is and decides where the file system has no locks.
type Lock struct{ file disk.File }

// Locked says who holds the lock. The program ends with exit status 4.
type Locked struct {
	File   string
	Holder Holder
}

func (l *Locked) Error() string {
	h := l.Holder
	if h.PID == 0 {
		return l.File + ": the run is in use by another process"
	}
	return fmt.Sprintf("%s: the run is in use by %s (process %d on %s, since %s); dagrun status tells how it stands",
		l.File, cmp.Or(h.Command, "dagrun"), h.PID, h.Host, h.Started.UTC().Format(time.RFC3339))
}

// Held reports whether the holder still has the lock, by its description alone.
func (l *Locked) Held() bool {
	data, _ := regular.Read(l.File, 4096)
	h, ok := readHolder(bytes.NewReader(data))
	return ok && h.PID == l.Holder.PID && h.Started.Equal(l.Holder.Started) && h.Alive()
}

// AcquireLock takes the lock or returns *Locked. The lock of a dead process is taken over: a child that it was just
// starting may have the lock for a moment longer, until its own program begins, and a process that takes the lock or
// lets it go has it for a moment without a description; so it is asked for again for a second.
func AcquireLock(fsys disk.FS, name, command string, now time.Time) (*Lock, error) {
	f, err := disk.OpenOwn(fsys, name)
	if err != nil {
		return nil, err
	}
	got, err := f.TryLock()
	if errors.Is(err, errors.ErrUnsupported) {
		h, _ := readHolder(f)
		got, err = !h.Alive(), nil
	}
	for try := 0; err == nil && !got; try++ {
		h, known := readHolder(f)
		if !(known && h.Alive()) && try < 100 {
			time.Sleep(10 * time.Millisecond)
			got, err = f.TryLock()
			continue
		}
		err = &Locked{fsys.Path(name), h}
	}
	if err == nil {
		err = writeHolder(f, self(command, now))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Lock{f}, nil
}

// ReadLock says who holds the lock; ok is false when nobody does. It goes by the description alone
// and takes no lock, so that asking never disturbs a writer that starts.
func ReadLock(fsys disk.FS, name string) (h Holder, ok bool, err error) {
	f, err := disk.OpenRegular(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return Holder{}, false, nil
	}
	if err != nil {
		return Holder{}, false, err
	}
	defer f.Close()
	if h, ok = readHolder(f); !ok {
		return Holder{}, false, nil
	}
	return h, h.Alive(), nil
}

// Release gives the lock up. Releasing twice is allowed.
func (l *Lock) Release() error {
	if l == nil || l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	return errors.Join(f.Truncate(0), f.Close())
}

// Abandon lets the lock go as a killed process would: the description stays.
func (l *Lock) Abandon() {
	if l != nil && l.file != nil {
		l.file.Close()
		l.file = nil
	}
}

func writeHolder(f disk.File, h Holder) error {
	b, err := json.Marshal(h)
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(append(b, '\n'), 0)
	}
	return err
}

func readHolder(f io.ReaderAt) (Holder, bool) {
	var b [4096]byte
	n, _ := f.ReadAt(b[:], 0)
	var h Holder
	if json.Unmarshal(bytes.TrimSpace(b[:n]), &h) != nil || h.PID == 0 {
		return Holder{}, false
	}
	return h, true
}

func self(command string, now time.Time) Holder {
	host, _ := os.Hostname()
	pid := os.Getpid()
	return Holder{PID: pid, Host: host, BootID: bootID(), Birth: birth(pid), Started: now.UTC(), Command: command}
}

// Alive reports whether the holder may still run. A process of another machine cannot be asked and
// counts as alive.
func (h Holder) Alive() bool {
	if h.PID == 0 {
		return false
	}
	if host, _ := os.Hostname(); h.Host != host {
		return true
	}
	if h.BootID != bootID() {
		return false
	}
	p, err := os.FindProcess(h.PID)
	if err != nil {
		return false
	}
	if err := p.Signal(syscall.Signal(0)); err != nil && !errors.Is(err, fs.ErrPermission) {
		return false
	}
	return h.Birth == birth(h.PID)
}

func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

// birth returns field 22 of /proc/PID/stat, empty where there is no such file, and of a process that has ended and
// is only kept until its parent asks for its status.
func birth(pid int) string {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	i := bytes.LastIndexByte(b, ')') // the command before it may hold anything
	if i < 0 {
		return ""
	}
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return ""
	}
	return f[19]
}
