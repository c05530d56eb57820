//! Any bytes on any streams of a server: no panic; each response has one head, and one end; the same in
//! two pieces as in one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_http3::{ClientConfig, ClientConnection, ClientEvent, ErrorCode};

/// The status, the body and whether it is complete.
type Response = (Option<u16>, Vec<u8>, bool);

fn read(stream_id: u64, pieces: &[&[u8]]) -> Result<Response, ErrorCode> {
    let mut connection = ClientConnection::new(ClientConfig::default());
    connection.expect_response(0, false);
    let (mut status, mut body, mut is_over, mut is_complete) = (None, Vec::new(), false, false);
    for (at, piece) in pieces.iter().enumerate() {
        let fin = at + 1 == pieces.len();
        let received = connection.receive(stream_id, piece, fin, |event| {
            assert!(!is_over);
            match event {
                ClientEvent::Head { head, .. } => {
                    assert!(head.status() >= 200 && status.is_none());
                    status = Some(head.status());
                }
                ClientEvent::Data { range, .. } => {
                    assert!(status.is_some() && !range.is_empty());
                    body.extend(&piece[range]);
                }
                ClientEvent::End { .. } => (is_over, is_complete) = (true, true),
                ClientEvent::StreamError { .. } | ClientEvent::UnknownStream { .. } => {
                    is_over = true;
                }
                ClientEvent::GoAway { stream_id } => assert_eq!(stream_id & 3, 0),
                ClientEvent::Settings(_) => {}
            }
        });
        received.map_err(|error| error.code())?;
        if is_over {
            break;
        }
    }
    Ok((status, body, is_complete))
}

fuzz_target!(|input: (u16, bool, &[u8])| {
    let (cut, is_request, bytes) = input;
    let stream_id = if is_request { 0 } else { 3 };
    let (first, second) = bytes.split_at(usize::from(cut) % (bytes.len() + 1));
    assert_eq!(read(stream_id, &[first, second]), read(stream_id, &[bytes]));
});
