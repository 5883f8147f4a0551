package browser

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// always are the flags that every browser is started with, beside those that the driver adds. What they do is listed at
// https://peter.sh/experiments/chromium-command-line-switches/.
var always = []string{
	// The same pixels on every machine.
	"headless", "hide-scrollbars", "mute-audio", "lang=en-US", "force-color-profile=srgb", "font-render-hinting=none",

	// Nothing that asks the user, or a keyring.
	"no-first-run", "no-default-browser-check", "no-service-autorun", "password-store=basic", "use-mock-keychain",
	"disable-hang-monitor", "disable-prompt-on-repost",

	// Pictures of tabs side by side: none is in the background.
	"disable-background-timer-throttling", "disable-backgrounding-occluded-windows", "disable-renderer-backgrounding",

	// Nothing talks to anybody but the page's server; see reach for what a page itself asks for.
	"disable-background-networking", "disable-component-update", "disable-default-apps", "disable-domain-reliability",
	"disable-sync", "disable-client-side-phishing-detection", "safebrowsing-disable-auto-update",
	"metrics-recording-only", "no-pings", "disable-extensions", "disable-breakpad", "disable-crash-reporter",
	"disable-features=Translate,MediaRouter,OptimizationHints,DialMediaRouteProvider,InterestFeedContentSuggestions",

	// Drawing by software: newer browsers do not fall back to it by themselves, and graphics cards differ.
	"disable-gpu", "enable-unsafe-swiftshader",

	// A page cannot open others: they would open others again.
	"block-new-web-contents",
}

// reach lets a browser reach the origin and nothing else. What is blocked in a tab covers neither its workers nor what
// the browser fetches ahead by itself; this does. A connection between browsers (WebRTC) has rules of its own.
func reach(origin string) []string {
	scheme, server, _ := strings.Cut(origin, "://")
	if !strings.Contains(server[strings.LastIndexByte(server, ']')+1:], ":") {
		server += map[string]string{"http": ":80", "https": ":443"}[scheme]
	}
	return []string{
		fmt.Sprintf("host-resolver-rules=MAP %s %s , MAP * ~NOTFOUND", server, server),
		"force-webrtc-ip-handling-policy=disable_non_proxied_udp",
	}
}

// flags returns the command line for this machine, by name: a value, or true. Those of the settings replace others.
func (s *Settings) flags(profile, origin string) map[string]any {
	list := slices.Concat(always, reach(origin), []string{"user-data-dir=" + profile})
	if os.Getuid() == 0 {
		list = append(list, "no-sandbox") // it refuses to start as root otherwise
	}
	if !sharedMemory("/dev/shm") {
		list = append(list, "disable-dev-shm-usage")
	}
	flags := map[string]any{}
	for _, flag := range append(list, s.Flags...) {
		name, value, given := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		if flags[name] = value; !given {
			flags[name] = true
		}
	}
	return flags
}
