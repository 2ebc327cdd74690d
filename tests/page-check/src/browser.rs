//! A headless Chromium, driven by its DevTools protocol.
//!
//! Owns: finding and starting it, calls and their answers, its complaints meanwhile.
//! Does not own: the rules of a good page (`look.js`).
//! Invariants: the browser uses two pipes that end with this process, so it ends, too. A call is answered within
//! [`PATIENCE`] or is an error. Its profile is a separate directory, removed at the end.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use afflux_scratch::Scratch;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// A guard against hangs, far above the time of any call here.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program's names in distributions.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Keeps the browser off the network, and makes a display and a sandbox unnecessary.
const FLAGS: &str = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync --disable-dev-shm-usage \
    --hide-scrollbars --remote-debugging-pipe";

/// The reason that a call of the browser failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrowserError {
    /// Chromium is not on the path.
    #[error("Chromium is not installed (Debian: apt-get install --no-install-recommends chromium)")]
    NotInstalled,
    /// It could not be started or reached.
    #[error("Chromium: {0}")]
    Broken(#[from] io::Error),
    /// It did not answer.
    #[error("Chromium did not answer {0} within {PATIENCE:?}")]
    Silent(String),
    /// It ended before it answered.
    #[error("Chromium ended while it was asked for {0}")]
    Gone(String),
    /// It answered with an error or with something unexpected.
    #[error("Chromium answered {0} with {1}")]
    Refused(String, Value),
}

/// The browser's path, if it is installed.
#[must_use]
pub fn installed() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = env::split_paths(&path).collect();
    let places = NAMES.iter().flat_map(|name| directories.iter().map(move |directory| directory.join(name)));
    places.into_iter().find(|place| place.is_file())
}

pub(crate) struct Browser {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    _profile: Scratch,
    session: String,
    calls: u64,
    events: Vec<Value>,
}

impl Browser {
    pub(crate) fn start() -> Result<Self, BrowserError> {
        let program = installed().ok_or(BrowserError::NotInstalled)?;
        let profile = Scratch::new(&env::temp_dir(), "page-check")?;
        // It reads calls from descriptor 3 and answers on 4: the shell moves our pipes there.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null"])
            .arg(program)
            .args(FLAGS.split_whitespace())
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let taken = child.stdin.take().zip(child.stdout.take());
        let (input, output) = taken.ok_or_else(|| io::Error::other("no pipes"))?;
        let (sender, messages) = channel();
        thread::spawn(move || {
            for message in BufReader::new(output).split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { continue };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let events = Vec::new();
        let mut browser = Self { child, input, messages, _profile: profile, session: String::new(), calls: 0, events };
        browser.attach()?;
        Ok(browser)
    }

    fn attach(&mut self) -> Result<(), BrowserError> {
        let target = self.call("Target.createTarget", &json!({"url": "about:blank"}))?;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = self.call("Target.attachToTarget", &attach)?;
        self.session = session["sessionId"].as_str().unwrap_or_default().to_owned();
        for domain in ["Page.enable", "Runtime.enable", "Network.enable", "Log.enable"] {
            self.call(domain, &json!({}))?;
        }
        Ok(())
    }

    /// Opens a page with a width and a colour scheme, and waits until it is drawn.
    pub(crate) fn show(&mut self, address: &str, width: u32, scheme: &str) -> Result<(), BrowserError> {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &size)?;
        let feature = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", &json!({"media": "", "features": feature}))?;
        self.events.retain(|event| event["method"] != "Page.loadEventFired");
        let answer = self.call("Page.navigate", &json!({"url": address}))?;
        if answer.get("errorText").is_some() {
            return Err(BrowserError::Refused(address.to_owned(), answer));
        }
        let deadline = Instant::now() + PATIENCE;
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.receive(deadline, "Page.navigate")?;
            self.events.push(event);
        }
        Ok(())
    }

    /// Shows the page as for a print on A4.
    pub(crate) fn print_media(&mut self) -> Result<(), BrowserError> {
        // A4 less 15 mm on each side, at 96 pixels per inch.
        let size = json!({"width": 680, "height": 1010, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &size)?;
        self.call("Emulation.setEmulatedMedia", &json!({"media": "print"})).map(drop)
    }

    /// The value of an expression in the page.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Result<Value, BrowserError> {
        let ask = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.call("Runtime.evaluate", &ask)?;
        if let Some(exception) = answer.get("exceptionDetails") {
            return Err(BrowserError::Refused("Runtime.evaluate".to_owned(), exception.clone()));
        }
        Ok(answer["result"]["value"].take())
    }

    /// Calls a method that answers with bytes.
    pub(crate) fn bytes(&mut self, method: &str, parameters: &Value) -> Result<Vec<u8>, BrowserError> {
        let answer = self.call(method, parameters)?;
        let bytes = answer["data"].as_str().and_then(|data| STANDARD.decode(data).ok());
        bytes.ok_or_else(|| BrowserError::Refused(method.to_owned(), Value::from("no data")))
    }

    /// The complaints since the last call: console messages, exceptions, requests other than for the page.
    pub(crate) fn complaints(&mut self, address: &str) -> Vec<String> {
        let complaint = |event: &Value| {
            let parameters = &event["params"];
            match event["method"].as_str()? {
                "Runtime.consoleAPICalled" => Some(format!("console: {}", parameters["args"])),
                "Runtime.exceptionThrown" => Some(format!("exception: {}", parameters["exceptionDetails"]["text"])),
                "Log.entryAdded" => Some(format!("log: {}", parameters["entry"]["text"])),
                "Network.requestWillBeSent" => {
                    let url = parameters["request"]["url"].as_str().unwrap_or_default();
                    (url != address && !url.starts_with("data:")).then(|| format!("it requests {url}"))
                }
                _ => None,
            }
        };
        let complaints = self.events.iter().filter_map(complaint).collect();
        self.events.clear();
        complaints
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Result<Value, BrowserError> {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = self.session.as_str().into();
        }
        self.input.write_all(format!("{message}\0").as_bytes())?;
        self.input.flush()?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut answer = self.receive(deadline, method)?;
            if answer["id"] != self.calls {
                self.events.push(answer);
                continue;
            }
            return match answer.get("error") {
                Some(error) => Err(BrowserError::Refused(method.to_owned(), error.clone())),
                None => Ok(answer["result"].take()),
            };
        }
    }

    fn receive(&self, deadline: Instant, what: &str) -> Result<Value, BrowserError> {
        let left = deadline.saturating_duration_since(Instant::now());
        self.messages.recv_timeout(left).map_err(|error| match error {
            RecvTimeoutError::Timeout => BrowserError::Silent(what.to_owned()),
            RecvTimeoutError::Disconnected => BrowserError::Gone(what.to_owned()),
        })
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.call("Browser.close", &json!({}));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
