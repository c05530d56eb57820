//! The `h2` crate as a client: an independent implementation understands the connection.

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Request, Version};
use outboard_http2::{Connection, Event, Settings, StreamKey};
use std::collections::HashMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// Sends each body back, or as many bytes as the path names; trailers for `/trailers`.
#[derive(Default)]
struct Echo {
    unsent: HashMap<StreamKey, (Vec<u8>, bool)>,
}

impl Echo {
    fn handle(&mut self, connection: &mut Connection, input: &mut Vec<u8>) {
        let mut rest = &input[..];
        while let Some(event) = connection.receive(&mut rest, 0).unwrap() {
            match event {
                Event::Head { stream, head, is_end } => {
                    let path = String::from_utf8(head.path().to_vec()).unwrap();
                    let bytes = path[1..].parse().unwrap_or(0);
                    let fields = [(&b"x-path"[..], path.as_bytes()), (b"Server", b"test")];
                    connection.send_head(stream, 200, fields, false).unwrap();
                    if path == "/trailers" {
                        connection.send_data(stream, b"body", false).unwrap();
                        connection.send_trailers(stream, [(&b"x"[..], &b"1"[..])]).unwrap();
                    } else {
                        self.unsent.insert(stream, (vec![b'x'; bytes], is_end));
                        self.send(connection, stream);
                    }
                }
                Event::Data { stream, data, is_end } => {
                    connection.release(stream, data.len());
                    if let Some((unsent, has_end)) = self.unsent.get_mut(&stream) {
                        unsent.extend_from_slice(data);
                        *has_end = is_end;
                    }
                    self.send(connection, stream);
                }
                Event::GoAway { .. } | Event::Reset { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        let consumed = input.len() - rest.len();
        input.drain(..consumed);
    }

    fn send(&mut self, connection: &mut Connection, stream: StreamKey) {
        let Some((unsent, has_end)) = self.unsent.get_mut(&stream) else { return };
        let accepted = connection.send_data(stream, unsent, *has_end).unwrap();
        unsent.drain(..accepted);
        if unsent.is_empty() && *has_end {
            self.unsent.remove(&stream);
        }
    }
}

async fn serve(mut io: DuplexStream) {
    let mut connection = Connection::new(Settings::default(), 0);
    let (mut echo, mut input) = (Echo::default(), Vec::new());
    loop {
        while connection.has_output() {
            let output = connection.output(32 << 10).to_vec();
            io.write_all(&output).await.unwrap();
            connection.sent(output.len());
            while let Some(stream) = connection.next_writable() {
                echo.send(&mut connection, stream);
            }
        }
        if io.read_buf(&mut input).await.unwrap_or(0) == 0 {
            return;
        }
        echo.handle(&mut connection, &mut input);
    }
}

fn with_client<F: Future<Output = ()>>(test: impl FnOnce(SendRequest<Bytes>) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (client, server) = tokio::io::duplex(1 << 16);
        tokio::spawn(serve(server));
        let (client, connection) = h2::client::handshake(client).await.unwrap();
        tokio::spawn(connection);
        test(client).await;
    });
}

struct Response {
    path: String,
    body: Vec<u8>,
    trailers: Option<HeaderMap>,
}

async fn exchange(client: &SendRequest<Bytes>, path: &str, body: Option<Vec<u8>>) -> Response {
    let uri = format!("https://a.test{path}");
    let request = Request::builder().version(Version::HTTP_2).method("POST").uri(uri);
    let request = request.header("cookie", "a=1").header("cookie", "b=2").body(()).unwrap();
    let mut client = client.clone().ready().await.unwrap();
    let (response, mut stream) = client.send_request(request, body.is_none()).unwrap();
    if let Some(body) = body {
        tokio::spawn(async move { stream.send_data(body.into(), true) });
    }
    let response = response.await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    assert_eq!(response.headers()["server"], "test");
    let path = response.headers()["x-path"].to_str().unwrap().to_owned();
    let (mut stream, mut body) = (response.into_body(), Vec::new());
    while let Some(piece) = stream.data().await {
        let piece = piece.unwrap();
        stream.flow_control().release_capacity(piece.len()).unwrap();
        body.extend_from_slice(&piece);
    }
    Response { path, body, trailers: stream.trailers().await.unwrap() }
}

#[test]
fn many_small_requests_are_answered() {
    with_client(async |client| {
        for round in 0..50 {
            let paths: Vec<_> = (0..50).map(|at| format!("/{}", round * at)).collect();
            let responses: Vec<_> = paths
                .iter()
                .map(|path| {
                    let (client, path) = (client.clone(), path.clone());
                    tokio::spawn(async move { exchange(&client, &path, None).await })
                })
                .collect();
            for (response, path) in responses.into_iter().zip(paths) {
                let response = response.await.unwrap();
                assert_eq!(response.body.len().to_string(), path[1..]);
                assert_eq!(response.path, path);
            }
        }
    });
}

#[test]
fn bodies_larger_than_every_window_pass_in_both_directions() {
    with_client(async |client| {
        let body: Vec<u8> = (0..3 << 20).map(|at| (at / 1000) as u8).collect();
        let responses: Vec<_> = (0..3)
            .map(|_| {
                let (client, body) = (client.clone(), body.clone());
                tokio::spawn(async move { exchange(&client, "/echo", Some(body)).await })
            })
            .collect();
        for response in responses {
            let received = response.await.unwrap().body;
            assert!(received == body, "{} bytes", received.len());
        }
    });
}

#[test]
fn trailers_arrive() {
    with_client(async |client| {
        let response = exchange(&client, "/trailers", None).await;
        assert_eq!(response.body, b"body");
        assert_eq!(response.trailers.unwrap()["x"], "1");
    });
}
