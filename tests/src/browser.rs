//! A real browser without a window: Chromium, spoken to in the Chrome DevTools Protocol over two
//! pipes, so that no port and no WebSocket is needed.

use crate::{Child, Launch, Scratch, eventually};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

/// How long the browser may take over one step before the test gives up on it.
const PATIENCE: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

/// One browser with one tab and an empty profile.
#[derive(Debug)]
pub struct Browser {
    commands: File,
    answers: File,
    ahead: Vec<u8>,
    events: VecDeque<Value>,
    session: String,
    next_id: u64,
    _child: Child,
    _scratch: Scratch,
}

impl Browser {
    /// Starts it.
    pub fn start() -> Browser {
        Browser::start_with(&["--disable-quic".to_owned()])
    }

    /// Starts it with these options, such as for HTTP/3.
    pub fn start_with(options: &[String]) -> Browser {
        let scratch = Scratch::new("browser");
        let [commands, answers] = ["commands", "answers"].map(|name| pipe(&scratch, name));
        // The protocol is read from descriptor 3 and written to 4.
        let child = Launch::new("sh")
            .env("HOME", scratch.folder("home"))
            .env("COMMANDS", scratch.path().join("commands"))
            .env("ANSWERS", scratch.path().join("answers"))
            .args(["-c", "exec chromium \"$@\" 3<\"$COMMANDS\" 4>\"$ANSWERS\"", "chromium"])
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update"])
            .args(["--disable-sync", "--disable-dev-shm-usage"])
            .args(options)
            .args(["--window-size=1280,1600", "--hide-scrollbars", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", scratch.folder("profile").display()))
            .arg("about:blank")
            .start();
        let mut browser = Browser {
            commands,
            answers,
            ahead: Vec::new(),
            events: VecDeque::new(),
            session: String::new(),
            next_id: 0,
            _child: child,
            _scratch: scratch,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = target["targetId"].clone();
        let attached =
            browser.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = attached["sessionId"].as_str().expect("a session has a name").to_owned();
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, json!({}));
        }
        browser
    }

    /// Goes to a page and waits until it has loaded.
    #[track_caller]
    pub fn visit(&mut self, url: &str) {
        self.forget_events();
        let answer = self.call("Page.navigate", json!({ "url": url }));
        assert!(answer.get("errorText").is_none(), "{url}: {answer}");
        self.wait_for("Page.loadEventFired");
    }

    /// Runs a script that makes the browser go to another page, and waits until that has loaded.
    #[track_caller]
    pub fn leave_by(&mut self, script: &str) {
        self.forget_events();
        self.evaluate(script);
        self.wait_for("Page.loadEventFired");
    }

    /// Does something that makes the page go to another one, or load anew, and waits until that has
    /// loaded.
    #[track_caller]
    pub fn reloads_by(&mut self, act: impl FnOnce()) {
        self.forget_events();
        act();
        self.wait_for("Page.loadEventFired");
    }

    /// Runs a script in the page, waits for its promise if it makes one, and returns its value.
    #[track_caller]
    pub fn evaluate(&mut self, script: &str) -> Value {
        let answer = self.call(
            "Runtime.evaluate",
            json!({ "expression": script, "awaitPromise": true, "returnByValue": true }),
        );
        assert!(answer.get("exceptionDetails").is_none(), "{script}: {answer:#}");
        answer["result"]["value"].clone()
    }

    /// The page as it is after its scripts have run.
    #[track_caller]
    pub fn dom(&mut self) -> String {
        let html = self.evaluate("document.documentElement.outerHTML");
        html.as_str().expect("it is text").to_owned()
    }

    /// Exceptions of the page's scripts, and what it could not get from its own site, so far.
    pub fn complaints(&mut self, origin: &str) -> Vec<String> {
        // An answer of the page comes after every event before it.
        self.evaluate("0");
        let complaints = self.events.iter().filter_map(|event| match event["method"].as_str()? {
            "Runtime.exceptionThrown" => Some(event["params"]["exceptionDetails"].to_string()),
            "Log.entryAdded" => {
                let entry = &event["params"]["entry"];
                let url = entry["url"].as_str().unwrap_or_default();
                let own = entry["level"] == "error" && url.starts_with(origin);
                own.then(|| format!("{} {url}", entry["text"]))
            }
            _ => None,
        });
        complaints.collect()
    }

    /// Gives the window another size, as that of a telephone if it is narrow.
    pub fn resize(&mut self, width: u32, height: u32) {
        let metrics = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600
        });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// Prefers `dark` or `light` pages.
    pub fn prefer(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Waits until a script returns true.
    #[track_caller]
    pub fn wait_until(&mut self, script: &str) {
        eventually(script, || {
            let found = self.evaluate(script) == true;
            found.then_some(()).ok_or_else(|| self.evaluate("document.body.innerText"))
        });
    }

    /// Saves a picture of the window.
    #[track_caller]
    pub fn screenshot(&mut self, path: &Path) {
        let answer = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let picture = decode_base64(answer["data"].as_str().expect("the picture is text"));
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).expect("the target folder is ours");
        }
        std::fs::write(path, picture).expect("the target folder is ours");
    }

    /// Events of a page that is left are nobody's any more.
    fn forget_events(&mut self) {
        self.events.retain(|event| event["method"] != "Page.loadEventFired");
    }

    #[track_caller]
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.next_id += 1;
        let mut command = json!({ "id": self.next_id, "method": method, "params": parameters });
        if !self.session.is_empty() {
            command["sessionId"] = json!(self.session);
        }
        let text = format!("{command}\0");
        self.commands.write_all(text.as_bytes()).expect("the pipe is open on our side");
        loop {
            let message = self.receive();
            if message["id"] == self.next_id {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push_back(message);
        }
    }

    #[track_caller]
    fn wait_for(&mut self, event: &str) {
        while !self.events.iter().any(|message| message["method"] == event) {
            let message = self.receive();
            self.events.push_back(message);
        }
    }

    /// The next message; they end with a zero byte.
    #[track_caller]
    fn receive(&mut self) -> Value {
        loop {
            if let Some(end) = self.ahead.iter().position(|&byte| byte == 0) {
                let message: Vec<u8> = self.ahead.drain(..=end).collect();
                return serde_json::from_slice(&message[..end]).expect("the protocol is JSON");
            }
            let ready = poll(&mut [PollFd::new(&self.answers, PollFlags::IN)], Some(&PATIENCE));
            assert_eq!(ready, Ok(1), "the browser is silent");
            let mut buffer = [0; 65536];
            let count = self.answers.read(&mut buffer).expect("poll said so");
            self.ahead.extend_from_slice(&buffer[..count]);
        }
    }
}

fn pipe(scratch: &Scratch, name: &str) -> File {
    let path = scratch.path().join(name);
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let made = rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0);
    made.unwrap_or_else(|error| panic!("mkfifo {}: {error}", path.display()));
    // Reading and writing: opening for one alone would wait for the other side (fifo(7)).
    OpenOptions::new().read(true).write(true).open(&path).expect("it is ours")
}

/// RFC 4648, section 4; what is not of the alphabet is passed over.
fn decode_base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    #[test]
    fn base64_is_decoded_to_the_last_bit() {
        assert_eq!(super::decode_base64("Zm9vYmFy"), b"foobar");
        assert_eq!(super::decode_base64("Zm9vYg=="), b"foob");
        assert_eq!(super::decode_base64("+/8="), [0xfb, 0xff]);
    }
}
