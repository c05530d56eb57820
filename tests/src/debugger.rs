//! The debugger that Xdebug connects to, as an IDE is one: a listener, and sessions in which it sends commands (DBGp,
//! xdebug.org/docs/dbgp). Each wait has a bound.

use crate::tcp;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

/// See the module.
#[derive(Debug)]
pub struct Debugger {
    listener: TcpListener,
}

/// A request, or a task, that is debugged.
#[derive(Debug)]
pub struct DebugSession {
    stream: TcpStream,
    /// The first message: what is debugged.
    pub init: String,
    /// Messages of the code's output, notices and the like.
    pub notes: VecDeque<String>,
    commands: u32,
}

impl Debugger {
    /// Listens on a free port.
    pub fn listen() -> Debugger {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        Debugger { listener }
    }

    /// For `xdebug.client_port`.
    pub fn port(&self) -> u16 {
        self.listener.local_addr().expect("it is bound").port()
    }

    /// Waits for the next session.
    #[track_caller]
    pub fn accept(&self) -> DebugSession {
        let stream = tcp::accept(&self.listener);
        let (init, notes) = (String::new(), VecDeque::new());
        let mut session = DebugSession { stream, init, notes, commands: 0 };
        session.init = session.message().expect("Xdebug says what it debugs");
        session
    }

    /// Whether nobody has connected, of those that have had their answers.
    pub fn is_unused(&self) -> bool {
        self.listener.set_nonblocking(true).expect("fcntl(2)");
        let accepted = self.listener.accept();
        self.listener.set_nonblocking(false).expect("fcntl(2)");
        accepted.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }
}

impl DebugSession {
    /// Sends a command with these arguments, and returns the response.
    #[track_caller]
    pub fn command(&mut self, command: &str) -> String {
        self.begin(command);
        self.response()
    }

    /// Sends a command.
    #[track_caller]
    pub fn begin(&mut self, command: &str) {
        self.commands += 1;
        let (name, arguments) = command.split_at(command.find(' ').unwrap_or(command.len()));
        let text = format!("{name} -i {}{arguments}\0", self.commands);
        self.stream.write_all(text.as_bytes()).expect("Xdebug reads");
    }

    /// The response to the last command.
    #[track_caller]
    pub fn response(&mut self) -> String {
        let id = format!("transaction_id=\"{}\"", self.commands);
        loop {
            let message = self.message().expect("Xdebug responds");
            if message.contains("<response") && message.contains(&id) {
                return message;
            }
            self.notes.push_back(message);
        }
    }

    /// Stops at this line of a file from now on; returns the breakpoint's id.
    #[track_caller]
    pub fn break_at(&mut self, file: &str, line: u32) -> String {
        let set = self.command(&format!("breakpoint_set -t line -f file://{file} -n {line}"));
        attribute(&set, "id").unwrap_or_else(|| panic!("no breakpoint: {set}"))
    }

    /// Lets the code go on by this command (`run`, `step_into`, …) and returns the line where it stops.
    #[track_caller]
    pub fn stops(&mut self, command: &str) -> u32 {
        let stopped = self.command(command);
        assert_eq!(attribute(&stopped, "status").as_deref(), Some("break"), "{stopped}");
        let line = attribute(&stopped, "lineno");
        line.and_then(|line| line.parse().ok()).unwrap_or_else(|| panic!("no line: {stopped}"))
    }

    /// Lets the code go on to its end.
    #[track_caller]
    pub fn finish(mut self) {
        self.begin("run");
        self.ends();
    }

    /// Waits for the end of code that goes on already.
    #[track_caller]
    pub fn ends(mut self) {
        // At the end Xdebug waits once more for commands, or has gone.
        while let Some(message) = self.message() {
            match attribute(&message, "status").as_deref() {
                Some("break") => panic!("it has stopped: {message}"),
                Some("stopping") => self.begin("run"),
                _ => {}
            }
        }
    }

    /// The value of an expression that is a number or a truth.
    #[track_caller]
    pub fn value(&mut self, expression: &str) -> i64 {
        let response = self.command(&format!("eval -- {}", base64(expression.as_bytes())));
        let value = response.split("<![CDATA[").nth(1).and_then(|rest| rest.split("]]>").next());
        value
            .and_then(|value| value.parse().ok())
            .unwrap_or_else(|| panic!("no number: {response}"))
    }

    /// The next message; `None` at the end of the connection.
    fn message(&mut self) -> Option<String> {
        let length: usize = String::from_utf8(self.until_nul()?).ok()?.parse().ok()?;
        let text = self.until_nul()?;
        assert_eq!(text.len(), length, "{}", String::from_utf8_lossy(&text));
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    fn until_nul(&mut self) -> Option<Vec<u8>> {
        let (mut text, mut byte) = (Vec::new(), [0]);
        loop {
            match self.stream.read(&mut byte) {
                Ok(1) if byte[0] == 0 => return Some(text),
                Ok(1) => text.push(byte[0]),
                Ok(_) => return None,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("Xdebug says nothing more: {error}"),
            }
        }
    }
}

/// The value of an attribute of the first element that has it.
pub fn attribute(xml: &str, name: &str) -> Option<String> {
    let start = xml.find(&format!(" {name}=\""))? + name.len() + 3;
    let value = &xml[start..];
    Some(value[..value.find('"')?].to_owned())
}

/// For data in commands, and to look for in responses.
pub fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63] as char;
            let digit = if place > group.len() { '=' } else { digit };
            text.write_char(digit).expect("a string takes all");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_fills_up_to_four_digits() {
        for (text, expected) in
            [("foobar", "Zm9vYmFy"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE=")]
        {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }

    #[test]
    fn an_attribute_is_found_by_its_whole_name() {
        let xml = "<response lineno=\"7\" no=\"8\"/>";
        assert_eq!(attribute(xml, "no").as_deref(), Some("8"));
        assert_eq!(attribute(xml, "line"), None);
    }
}
