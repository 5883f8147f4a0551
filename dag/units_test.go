package dag

import "testing"

// One form of amounts for people: cents from a dollar upwards, four decimals at most below, and nothing that
// costs looks free.
func TestUSDForPeople(t *testing.T) {
	for u, want := range map[USD]string{
		0: "0.00", 1: "0.0001", 49: "0.0001", 4_217: "0.0042", 42_717: "0.0427", 50_000: "0.05", 125_000: "0.125", 500_000: "0.50",
		999_949: "0.9999", 999_950: "1.00", 1_000_000: "1.00", 7_403_140: "7.40", 12_345_678: "12.35", 200_000_000: "200.00", -125_000: "-0.125",
	} {
		if got := u.String(); got != want {
			t.Errorf("%d millionths: %s, want %s", int64(u), got, want)
		}
	}
}
