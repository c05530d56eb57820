//! Properties: the windows of the client are never exceeded, and no frames cause a panic.

mod support;

use outboard_http2::{Event, StreamKey};
use proptest::prelude::*;
use std::collections::HashMap;
use support::*;

/// What one of the two sides does.
#[derive(Debug, Clone)]
enum Action {
    Request,
    Send { stream: usize, bytes: usize, is_end: bool },
    Update { stream: usize, increment: u32 },
    UpdateConnection(u32),
    InitialWindow(u32),
    Write { budget_bytes: usize },
}

fn action() -> impl Strategy<Value = Action> {
    let stream = 0usize..6;
    prop_oneof![
        Just(Action::Request),
        (stream.clone(), 0usize..100_000, prop::bool::weighted(0.2))
            .prop_map(|(stream, bytes, is_end)| Action::Send { stream, bytes, is_end }),
        (stream, 1u32..100_000)
            .prop_map(|(stream, increment)| Action::Update { stream, increment }),
        (1u32..100_000).prop_map(Action::UpdateConnection),
        (0u32..100_000).prop_map(Action::InitialWindow),
        (1usize..70_000).prop_map(|budget_bytes| Action::Write { budget_bytes }),
    ]
}

/// The client's account of what it allows, and of what was accepted from the server.
struct Account {
    connection: i64,
    initial: i64,
    streams: HashMap<u32, i64>,
    accepted: HashMap<u32, usize>,
    received: HashMap<u32, usize>,
}

impl Account {
    fn receive(&mut self, frames: &[Frame]) -> Result<(), TestCaseError> {
        for frame in frames.iter().filter(|frame| frame.kind == DATA) {
            let bytes = frame.payload.len();
            self.connection -= bytes as i64;
            let window = self.streams.get_mut(&frame.id).unwrap();
            *window -= bytes as i64;
            prop_assert!(bytes == 0 || (*window >= 0 && self.connection >= 0));
            *self.received.entry(frame.id).or_default() += bytes;
        }
        Ok(())
    }
}

fn run(actions: Vec<Action>) -> Result<(), TestCaseError> {
    let mut client = Client::new();
    let mut streams: Vec<StreamKey> = Vec::new();
    let mut account = Account {
        connection: 65_535,
        initial: 65_535,
        streams: HashMap::new(),
        accepted: HashMap::new(),
        received: HashMap::new(),
    };
    for action in actions {
        match action {
            Action::Request if streams.len() < 6 => {
                let stream = client.get(2 * streams.len() as u32 + 1);
                head(&mut client.connection, stream, false);
                account.streams.insert(stream.id(), account.initial);
                streams.push(stream);
            }
            Action::Request => {}
            Action::Send { stream, bytes, is_end } => {
                let Some(stream) = streams.get(stream) else { continue };
                let accepts = client.connection.accepts_bytes(*stream);
                let sent = client.connection.send_data(*stream, &vec![0; bytes], is_end);
                let Ok(accepted) = sent else { continue };
                prop_assert_eq!(accepted, accepts.min(bytes));
                *account.accepted.entry(stream.id()).or_default() += accepted;
            }
            Action::Update { stream, increment } => {
                let Some(stream) = streams.get(stream) else { continue };
                client.window_update(stream.id(), increment);
                *account.streams.get_mut(&stream.id()).unwrap() += i64::from(increment);
            }
            Action::UpdateConnection(increment) => {
                client.window_update(0, increment);
                account.connection += i64::from(increment);
            }
            Action::InitialWindow(bytes) => {
                client.setting(4, bytes);
                let difference = i64::from(bytes) - account.initial;
                account.initial = i64::from(bytes);
                account.streams.values_mut().for_each(|window| *window += difference);
                // The frames before it were sent with the former window.
                let frames = client.frames();
                account.streams.values_mut().for_each(|window| *window -= difference);
                account.receive(&frames)?;
                account.streams.values_mut().for_each(|window| *window += difference);
            }
            Action::Write { budget_bytes } => {
                let frames = client.frames_up_to(budget_bytes);
                account.receive(&frames)?;
            }
        }
        prop_assert_eq!(client.poll(), Ok(Vec::new()));
    }
    // With open windows, everything that was accepted arrives.
    client.window_update(0, 1 << 28);
    streams.iter().for_each(|stream| client.window_update(stream.id(), 1 << 28));
    account.connection += 1 << 28;
    account.streams.values_mut().for_each(|window| *window += 1 << 28);
    prop_assert_eq!(client.poll(), Ok(Vec::new()));
    let frames = client.frames();
    account.receive(&frames)?;
    for stream in streams {
        let of = |counts: &HashMap<u32, usize>| counts.get(&stream.id()).copied().unwrap_or(0);
        prop_assert_eq!(of(&account.received), of(&account.accepted));
    }
    Ok(())
}

fn frame() -> impl Strategy<Value = (u8, u8, u32, Vec<u8>)> {
    let payload = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        Just(b"\x82\x87\x04\x02/a".to_vec()),
        Just(b"\0\x04\0\0\0\x05".to_vec()),
        Just(vec![0, 0, 0, 5]),
        Just(vec![0; 3_000]),
    ];
    let kind = prop_oneof![Just(HEADERS), Just(DATA), 0u8..11, Just(PRIORITY_UPDATE)];
    let flags = prop_oneof![Just(5u8), Just(4), Just(0), any::<u8>()];
    (kind, flags, prop_oneof![Just(0u32), 1u32..12], payload)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn windows_are_not_exceeded_and_no_data_is_lost(
        actions in prop::collection::vec(action(), 0..60),
    ) {
        run(actions)?;
    }

    #[test]
    fn no_frames_cause_a_panic_or_unbounded_output(
        frames in prop::collection::vec(frame(), 0..60),
    ) {
        let mut client = Client::new();
        frames.iter().for_each(|(kind, flags, id, payload)| {
            client.send(*kind, *flags, *id, payload);
        });
        let input = client.take_input();
        let mut rest = &input[..];
        while let Ok(Some(event)) = client.connection.receive(&mut rest, 0) {
            let (stream, bytes) = match event {
                Event::Head { stream, .. } => (stream, 0),
                Event::Data { stream, data, .. } => (stream, data.len()),
                _ => continue,
            };
            client.connection.release(stream, bytes);
            let _ = client.connection.send_head(stream, 200, [], false);
            let _ = client.connection.send_data(stream, &[0; 9_000], stream.id() % 3 == 0);
        }
        prop_assert!(client.connection.unsent_bytes() < 1 << 20);
        client.frames();
        prop_assert!(!client.connection.has_output());
    }
}
