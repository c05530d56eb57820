//! [`Upstream`]: a server in the event loop of a test, for unit tests of what sends requests.
//!
//! Compiled with the feature `testing` only.

use outboard_reactor::{Listener, Stream, spawn};
use std::cell::RefCell;
use std::io::IoSlice;
use std::net::TcpListener;
use std::rc::Rc;

/// See the module. It closes each connection after its response.
#[derive(Debug)]
pub struct Upstream {
    /// Its port of 127.0.0.1.
    pub port: u16,
    /// The requests so far.
    pub requests: Rc<RefCell<Vec<String>>>,
}

impl Upstream {
    /// Responds to each request with the text that `handler` returns.
    ///
    /// # Panics
    /// No port is free.
    pub fn start(handler: impl Fn(&str) -> String + 'static) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let port = socket.local_addr().unwrap().port();
        let listener = Listener::new(socket.into()).unwrap();
        let requests = Rc::<RefCell<Vec<String>>>::default();
        let (handler, received) = (Rc::new(handler), requests.clone());
        spawn(async move {
            while let Ok(accepted) = listener.accept().await {
                let (handler, received) = (handler.clone(), received.clone());
                spawn(async move {
                    let request = read_request(&accepted.stream).await;
                    let response = handler(&request);
                    received.borrow_mut().push(request);
                    let mut slices = [IoSlice::new(response.as_bytes())];
                    let _ = accepted.stream.write_all(&mut slices).await;
                });
            }
        });
        Self { port, requests }
    }

    /// Responds with 200 and this body.
    pub fn with_body(body: &'static str) -> Self {
        Self::start(move |_| ok("", body))
    }

    /// The last request.
    ///
    /// # Panics
    /// There was none.
    pub fn last_request(&self) -> String {
        self.requests.borrow().last().expect("a request").clone()
    }
}

/// A response with these header lines.
pub fn ok(lines: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n{lines}\r\n{body}")
}

async fn read_request(stream: &Stream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().ok())?
            });
            let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
            let is_complete = match is_chunked {
                true => body.ends_with("0\r\n\r\n"),
                false => body.len() >= length.unwrap_or(0),
            };
            if is_complete {
                return text.into_owned();
            }
        }
        bytes.reserve(16 << 10);
        if stream.read(&mut bytes).await.unwrap_or(0) == 0 {
            return String::from_utf8_lossy(&bytes).into_owned();
        }
    }
}
