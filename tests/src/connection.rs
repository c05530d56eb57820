//! One TCP connection to a server: bytes out, responses in, and everything in between visible.

use crate::{Framing, Response, tcp};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A connection; reading stops exactly at the end of a response, so that it can be used again.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    ahead: Vec<u8>,
}

impl Connection {
    /// Connects.
    #[track_caller]
    pub fn open(address: SocketAddr) -> Connection {
        let stream = tcp::connect(address);
        stream.set_nodelay(true).expect("a TCP socket has the option");
        Connection { stream, ahead: Vec::new() }
    }

    /// Sends bytes; an error means that the server does not want them.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Reads a response to a request that was not HEAD.
    pub fn response(&mut self) -> io::Result<Response> {
        self.response_to("GET")
    }

    /// Reads a response; the method of its request decides whether a body follows.
    /// Interim responses (100 Continue) are passed over.
    pub fn response_to(&mut self, method: &str) -> io::Result<Response> {
        let mut response = self.head()?;
        while (100..200).contains(&response.status) && response.status != 101 {
            response = self.head()?;
        }
        self.body(method, &mut response)?;
        Ok(response)
    }

    /// Reads a head alone, interim or final.
    pub fn head(&mut self) -> io::Result<Response> {
        let head = self.until(b"\r\n\r\n")?;
        Response::parse_head(&head)
            .map_err(|reason| io::Error::new(io::ErrorKind::InvalidData, reason))
    }

    /// Reads one chunk of a chunked body; `None` at its end, after the trailers.
    pub fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let line = self.until(b"\r\n")?;
        let size = String::from_utf8_lossy(&line);
        let size = usize::from_str_radix(size.trim(), 16).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidData, format!("not a chunk size: {size:?}"))
        })?;
        if size == 0 {
            while !self.until(b"\r\n")?.is_empty() {}
            return Ok(None);
        }
        let chunk = self.exactly(size)?;
        match self.exactly(2)?.as_slice() {
            b"\r\n" => Ok(Some(chunk)),
            other => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a chunk of {size} bytes ends with {other:?}"),
            )),
        }
    }

    /// Whether the server has closed the connection; waits until it has or sends something.
    pub fn is_closed(&mut self) -> bool {
        self.ahead.is_empty() && self.fill().is_err()
    }

    fn body(&mut self, method: &str, response: &mut Response) -> io::Result<()> {
        let bodiless = method == "HEAD" || matches!(response.status, 101 | 204 | 304);
        if bodiless {
            response.framing = Framing::None;
        } else if response.all("transfer-encoding").any(|coding| coding == "chunked") {
            let mut sizes = Vec::new();
            while let Some(chunk) = self.chunk()? {
                sizes.push(chunk.len());
                response.body.extend_from_slice(&chunk);
            }
            response.framing = Framing::Chunked(sizes);
        } else if let Some(length) = response.header("content-length") {
            let length = length.parse().map_err(|_| io::ErrorKind::InvalidData)?;
            response.body = self.exactly(length)?;
            response.framing = Framing::Length;
        } else {
            while self.fill().is_ok() {}
            response.body = std::mem::take(&mut self.ahead);
            response.framing = Framing::Close;
        }
        Ok(())
    }

    fn until(&mut self, end: &[u8]) -> io::Result<Vec<u8>> {
        let mut searched = 0;
        loop {
            let found = self.ahead[searched..].windows(end.len()).position(|window| window == end);
            if let Some(position) = found {
                let mut taken: Vec<u8> =
                    self.ahead.drain(..searched + position + end.len()).collect();
                taken.truncate(searched + position);
                return Ok(taken);
            }
            searched = self.ahead.len().saturating_sub(end.len() - 1);
            self.fill()?;
        }
    }

    fn exactly(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.ahead.len() < count {
            self.fill()?;
        }
        Ok(self.ahead.drain(..count).collect())
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut buffer = [0; 65536];
        match self.stream.read(&mut buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                self.ahead.extend_from_slice(&buffer[..count]);
                Ok(())
            }
        }
    }
}
