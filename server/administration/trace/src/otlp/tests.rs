//! What is encoded is what a collector reads.

use super::*;
use crate::ids::Ids;
use crate::span::Kind;
use crate::testing::{Received, decode};
use proptest::prelude::*;
use std::borrow::Cow;

fn resource() -> Resource {
    let attributes = vec![("service.name".to_owned(), "shop".to_owned())];
    Resource { attributes, version: "1.0" }
}

fn context(ids: &Ids) -> TraceContext {
    TraceContext {
        trace_id: ids.trace_id(),
        span_id: ids.span_id(),
        is_sampled: true,
        is_random: true,
    }
}

fn exported(context: &TraceContext, state: &[u8], span: &Span) -> Received {
    let mut entries = Vec::new();
    span_entry(&mut entries, context, (state, true), span);
    let mut decoded = decode(&request(&resource(), &entries)).expect("a valid request");
    assert_eq!(decoded.len(), 1);
    decoded.remove(0)
}

#[test]
fn a_collector_reads_the_span_that_was_encoded() {
    let ids = Ids::default();
    let (context, parent) = (context(&ids), ids.span_id());
    let span = Span {
        parent: Some(parent),
        error: Some(Cow::Borrowed("refused")),
        ..Span::new(ids.span_id(), Kind::Server, "GET /").between(5, 7)
    };
    let span = span.with("a", "text").with("b", 7_u64).with("c", Value::Flag(true));
    let received = exported(&context, b"k=v", &span);
    assert_eq!(received.trace_id, context.trace_id.to_string());
    assert_eq!(received.span_id, span.id.to_string());
    assert_eq!(received.parent, parent.to_string());
    assert_eq!(
        (received.name.as_str(), received.kind, received.state.as_str()),
        ("GET /", 2, "k=v")
    );
    assert_eq!((received.start_ns, received.end_ns), (5_000, 7_000));
    assert_eq!(received.error.as_deref(), Some("refused"));
    assert_eq!(received.flags, 0x303);
    assert_eq!(received.resource["service.name"], "shop");
    let attributes = [("a", "text"), ("b", "7"), ("c", "true")];
    let expected = attributes.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(received.attributes, expected.into());
}

#[test]
fn a_span_does_not_end_before_it_starts() {
    let ids = Ids::default();
    let span = Span::new(ids.span_id(), Kind::Internal, "x").between(9, 5);
    assert_eq!(exported(&context(&ids), b"", &span).end_ns, 9_000);
}

proptest! {
    #[test]
    fn any_span_is_decoded_to_what_it_was(
        name in "\\PC{1,200}",
        attributes in proptest::collection::btree_map("[a-z.]{1,20}", "\\PC{0,300}", 0..40),
        (start_us, took_us) in (1_u64..1 << 52, 0_u64..1 << 40),
        number in any::<i64>(),
    ) {
        let ids = Ids::default();
        let span = Span::new(ids.span_id(), Kind::Client, name.clone());
        let mut span = span.between(start_us, start_us + took_us);
        for (key, value) in &attributes {
            span = span.with(key.clone(), value.clone());
        }
        span.attributes.push(("N".into(), Value::Integer(number)));
        let mut received = exported(&context(&ids), b"", &span);
        prop_assert_eq!(received.attributes.remove("N"), Some(number.to_string()));
        prop_assert_eq!(received.attributes, attributes);
        prop_assert_eq!((received.name, received.error), (name, None));
        prop_assert_eq!(received.end_ns - received.start_ns, took_us * 1_000);
    }

    #[test]
    fn spans_follow_each_other_in_a_request(count in 0_usize..300) {
        let (ids, mut entries) = (Ids::default(), Vec::new());
        let context = context(&ids);
        for n in 0..count {
            let span = Span::new(ids.span_id(), Kind::Internal, format!("{n}")).between(1, 2);
            span_entry(&mut entries, &context, (b"", false), &span);
        }
        let names: Vec<String> =
            decode(&request(&resource(), &entries)).unwrap().into_iter().map(|one| one.name).collect();
        prop_assert_eq!(names, (0..count).map(|n| n.to_string()).collect::<Vec<_>>());
    }
}
