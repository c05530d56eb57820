//! A request that is like earlier ones allocates nothing.

mod support;

use allocation_counter::measure;
use outboard_http2::{Event, RequestHead};
use support::{Client, END_HEADERS, END_STREAM, HEADERS, List, pairs};

const REQUESTS: u32 = 100;

/// Serves the input with an exchanged head and a body in two parts.
fn serve(client: &mut Client, input: &[u8], spare: &mut RequestHead) -> usize {
    let mut rest = input;
    let mut written = 0;
    while let Some(event) = client.connection.receive(&mut rest, 0).unwrap() {
        let Event::Head { stream, head, .. } = event else { panic!("{event:?}") };
        std::mem::swap(spare, head);
        let fields: List = &[("content-type", "text/html"), ("x-path", "a"), ("etag", "\"1\"")];
        client.connection.send_head(stream, 200, pairs(fields), false).unwrap();
        assert_eq!(client.connection.send_data(stream, &[0; 30_000], false), Ok(30_000));
        assert_eq!(client.connection.send_data(stream, &[0; 20_000], true), Ok(20_000));
        while client.connection.has_output() {
            let bytes = client.connection.output(16 << 10).len();
            client.connection.sent(bytes);
            written += bytes;
        }
    }
    written
}

#[test]
fn a_request_allocates_nothing() {
    let mut client = Client::new();
    client.setting(4, (1 << 31) - 1);
    client.window_update(0, 1 << 30);
    client.poll().unwrap();
    client.frames();
    let request = |client: &mut Client, id| {
        let fields = [(":method", "GET"), (":scheme", "https"), (":path", "/a"), ("cookie", "a=b")];
        let block = client.block(&fields);
        client.send(HEADERS, END_HEADERS | END_STREAM, id, &block);
    };
    let mut ids = (1..).step_by(2);
    let mut input = |client: &mut Client| {
        ids.by_ref().take(REQUESTS as usize).for_each(|id| request(client, id));
        client.take_input()
    };
    let (warm, measured) = (input(&mut client), input(&mut client));
    let mut spare = RequestHead::new();
    serve(&mut client, &warm, &mut spare);
    let mut written = 0;
    let counted = measure(|| written = serve(&mut client, &measured, &mut spare));
    assert!(written > REQUESTS as usize * 50_000);
    assert_eq!(counted.count_total, 0);
}
