use std::os::unix::fs::FileExt;
use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;

use super::*;
use crate::scratch::Scratch;
use crate::{Lookup, Root, RootOptions};

const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const DATE_S: u64 = 784_111_777;

/// Where the bytes of the file are; each test checks both.
#[derive(Clone, Copy)]
enum Place {
    Memory,
    File,
}

fn options(place: Place) -> RootOptions {
    let small_file_bytes = match place {
        Place::Memory => 1 << 20,
        Place::File => 0,
    };
    RootOptions { small_file_bytes, ..RootOptions::default() }
}

fn entry(scratch: &Scratch, name: &str, options: RootOptions) -> Rc<Entry> {
    let root = Root::open(scratch.path(), options).unwrap();
    match root.lookup(format!("/{name}").as_bytes(), 0) {
        Lookup::File(entry) => entry,
        other => panic!("{name} is {other:?}"),
    }
}

fn alphabet(scratch: &Scratch, place: Place) -> Rc<Entry> {
    scratch.file("a.txt", "abcdefghijklmnopqrstuvwxyz");
    scratch.date("a.txt", UNIX_EPOCH + Duration::from_secs(DATE_S));
    entry(scratch, "a.txt", options(place))
}

fn ranged(range: &[u8]) -> Conditions<'_> {
    Conditions { range: Some(range), ..Conditions::default() }
}

/// The bytes that the gateway would write.
fn body(plan: &Plan) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in &plan.body {
        match part {
            Part::File { file, offset, len } => {
                let file = std::fs::File::from(file.try_clone().unwrap());
                let mut piece = vec![0; usize::try_from(*len).unwrap()];
                file.read_exact_at(&mut piece, *offset).unwrap();
                bytes.extend_from_slice(&piece);
            }
            in_memory => bytes.extend_from_slice(in_memory.bytes().unwrap()),
        }
    }
    bytes
}

fn header<'a>(plan: &'a Plan, name: &str) -> Option<&'a str> {
    let mut values = plan.headers.iter().filter(|(theirs, _)| *theirs == name);
    let value = values.next().map(|(_, value)| std::str::from_utf8(value).unwrap());
    assert_eq!(values.next(), None, "{name} stands twice");
    value
}

fn names(plan: &Plan) -> Vec<&str> {
    plan.headers.iter().map(|(name, _)| *name).collect()
}

#[test]
fn a_plain_request_gets_the_whole_file() {
    for place in [Place::Memory, Place::File] {
        let scratch = Scratch::new();
        let entry = alphabet(&scratch, place);
        let plan = plan(&entry, None, &Conditions::default());
        assert_eq!((plan.status, plan.content_length), (200, 26));
        assert_eq!(body(&plan), b"abcdefghijklmnopqrstuvwxyz");
        assert_eq!(header(&plan, "Content-Type"), Some("text/plain; charset=utf-8"));
        assert_eq!(header(&plan, "Last-Modified"), Some(DATE));
        assert_eq!(header(&plan, "Accept-Ranges"), Some("bytes"));
        assert_eq!(header(&plan, "ETag"), Some(entry.etag()));
        assert_eq!(header(&plan, "Vary"), None);
        assert!(entry.etag().starts_with('"') && entry.etag().ends_with('"'));
    }
}

#[test]
fn the_rendered_head_is_the_plans_header_lines() {
    let scratch = Scratch::new();
    let entry = alphabet(&scratch, Place::Memory);
    let plan = plan(&entry, None, &Conditions::default());
    let mut rendered = Vec::new();
    for (name, value) in plan.headers.iter() {
        rendered.extend_from_slice(&[name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    assert_eq!(entry.head_200().as_ref(), rendered);
}

#[test]
fn head_gets_the_headers_of_get_and_no_body() {
    let scratch = Scratch::new();
    let entry = alphabet(&scratch, Place::Memory);
    let get = plan(&entry, None, &Conditions::default());
    let head = plan(&entry, None, &Conditions { is_head: true, ..ranged(b"bytes=0-1") });
    assert_eq!((head.status, head.content_length, &head.headers), (200, 26, &get.headers));
    assert!(head.body.is_empty());
}

#[test]
fn an_empty_file_is_an_empty_200() {
    for place in [Place::Memory, Place::File] {
        let scratch = Scratch::new();
        scratch.file("empty.txt", "");
        let entry = entry(&scratch, "empty.txt", options(place));
        for request in [Conditions::default(), ranged(b"bytes=-5")] {
            let plan = plan(&entry, None, &request);
            assert_eq!((plan.status, plan.content_length, plan.body.len()), (200, 0, 0));
        }
        assert_eq!(plan(&entry, None, &ranged(b"bytes=0-")).status, 416);
    }
}

#[test]
fn single_ranges_are_cut_out() {
    for place in [Place::Memory, Place::File] {
        let scratch = Scratch::new();
        let entry = alphabet(&scratch, place);
        for (range, content, content_range) in [
            ("bytes=0-0", "a", "bytes 0-0/26"),
            ("bytes=2-4", "cde", "bytes 2-4/26"),
            ("bytes=23-", "xyz", "bytes 23-25/26"),
            ("bytes=-2", "yz", "bytes 24-25/26"),
            ("bytes=0-", "abcdefghijklmnopqrstuvwxyz", "bytes 0-25/26"),
            ("bytes=25-99", "z", "bytes 25-25/26"),
            // Near ranges are sent as one.
            ("bytes=0-1,4-5", "abcdef", "bytes 0-5/26"),
        ] {
            let plan = plan(&entry, None, &ranged(range.as_bytes()));
            assert_eq!((plan.status, plan.content_length), (206, content.len() as u64), "{range}");
            assert_eq!(body(&plan), content.as_bytes(), "{range}");
            assert_eq!(header(&plan, "Content-Range"), Some(content_range), "{range}");
            assert_eq!(header(&plan, "Content-Type"), Some("text/plain; charset=utf-8"));
            assert_eq!(header(&plan, "ETag"), Some(entry.etag()));
        }
    }
}

#[test]
fn an_unsatisfiable_range_gets_the_size() {
    let scratch = Scratch::new();
    let entry = alphabet(&scratch, Place::Memory);
    let plan = plan(&entry, None, &ranged(b"bytes=26-"));
    assert_eq!((plan.status, plan.content_length, plan.body.len()), (416, 0, 0));
    assert_eq!(names(&plan), ["Content-Range"]);
    assert_eq!(header(&plan, "Content-Range"), Some("bytes */26"));
}

#[test]
fn several_ranges_are_multipart() {
    for place in [Place::Memory, Place::File] {
        let scratch = Scratch::new();
        let content: Vec<u8> = (0..10_000u32).map(|i| b'0' + (i % 10) as u8).collect();
        scratch.file("a.txt", &content);
        let entry = entry(&scratch, "a.txt", options(place));
        let plan = plan(&entry, None, &ranged(b"bytes=5000-5002, 0-1, -1"));
        assert_eq!(plan.status, 206);
        assert_eq!(header(&plan, "Content-Range"), None);
        let content_type = header(&plan, "Content-Type").unwrap();
        let boundary = content_type.strip_prefix("multipart/byteranges; boundary=").unwrap();
        let part = |range: &str, bytes: &str| {
            format!(
                "\r\n--{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\n\
                 Content-Range: bytes {range}/10000\r\n\r\n{bytes}"
            )
        };
        let expected = [
            part("5000-5002", "012"),
            part("0-1", "01"),
            part("9999-9999", "9"),
            format!("\r\n--{boundary}--\r\n"),
        ]
        .concat();
        assert_eq!(String::from_utf8(body(&plan)).unwrap(), expected);
        assert_eq!(plan.content_length, expected.len() as u64);
    }
}

#[test]
fn framing_larger_than_the_file_gives_the_file() {
    let scratch = Scratch::new();
    scratch.file("a.txt", vec![b'x'; 200]);
    let entry = entry(&scratch, "a.txt", options(Place::Memory));
    let plan = plan(&entry, None, &ranged(b"bytes=0-0,199-199"));
    assert_eq!((plan.status, plan.content_length), (200, 200));
}

#[test]
fn boundaries_of_two_processes_differ() {
    // Two roots stand for two processes: each has its own secret.
    let scratch = Scratch::new();
    scratch.file("a.txt", "a");
    let boundary = || entry(&scratch, "a.txt", options(Place::Memory)).boundary;
    assert_ne!(boundary(), boundary());
}

#[test]
fn not_modified_repeats_only_what_caches_need() {
    let scratch = Scratch::new();
    scratch.file("a.txt", "text");
    scratch.file("a.txt.gz", "packed");
    let headers = [("Cache-Control", "max-age=60".to_owned())].into();
    let options = RootOptions { headers, ..options(Place::Memory) };
    let entry = entry(&scratch, "a.txt", options);
    let plan =
        plan(&entry, None, &Conditions { if_none_match: Some(b"*"), ..Conditions::default() });
    assert_eq!((plan.status, plan.content_length, plan.body.len()), (304, 0, 0));
    assert_eq!(names(&plan), ["ETag", "Cache-Control", "Vary"]);
}

#[test]
fn conditions_use_the_files_own_validators() {
    let scratch = Scratch::new();
    let entry = alphabet(&scratch, Place::Memory);
    let etag = Some(entry.etag().as_bytes());
    let date = Some(DATE.as_bytes());
    let range = Some(&b"bytes=0-0"[..]);
    let request = Conditions::default();
    for (request, status) in [
        (Conditions { if_none_match: etag, ..request }, 304),
        (Conditions { if_modified_since: date, ..request }, 304),
        (Conditions { if_match: etag, ..request }, 200),
        (Conditions { if_match: Some(b"\"other\""), ..request }, 412),
        (Conditions { if_unmodified_since: date, ..request }, 200),
        (
            Conditions { if_unmodified_since: Some(b"Sat, 01 Jan 1994 00:00:00 GMT"), ..request },
            412,
        ),
        (Conditions { range, if_range: etag, ..request }, 206),
        (Conditions { range, if_range: date, ..request }, 206),
        (Conditions { range, if_range: Some(b"\"other\""), ..request }, 200),
    ] {
        assert_eq!(plan(&entry, None, &request).status, status, "{request:?}");
    }
}

#[test]
fn a_sibling_is_another_representation_of_the_same_file() {
    let scratch = Scratch::new();
    scratch.file("a.css", "plain text");
    scratch.file("a.css.br", "brotli");
    scratch.file("a.css.gz", "gzip");
    let entry = entry(&scratch, "a.css", options(Place::Memory));
    let ask = |accept_encoding: &'static [u8]| {
        plan(&entry, Some(accept_encoding), &Conditions::default())
    };
    for (accept_encoding, coding, content) in [
        (&b"gzip, br"[..], Some("br"), "brotli"),
        (b"gzip", Some("gzip"), "gzip"),
        (b"identity", None, "plain text"),
        (b"zstd", None, "plain text"),
    ] {
        let plan = ask(accept_encoding);
        assert_eq!(header(&plan, "Content-Encoding"), coding);
        assert_eq!(header(&plan, "Content-Type"), Some("text/css; charset=utf-8"));
        assert_eq!(header(&plan, "Vary"), Some("Accept-Encoding"));
        assert_eq!(body(&plan), content.as_bytes());
    }
    let (br, gzip) = (ask(b"br"), ask(b"gzip"));
    assert_ne!(header(&br, "ETag"), header(&gzip, "ETag"));
    // A tag is valid only for its own coding.
    let tag = header(&br, "ETag").unwrap().as_bytes();
    for (accept_encoding, status) in [(&b"br"[..], 304), (b"gzip", 200)] {
        let request = Conditions { if_none_match: Some(tag), ..Conditions::default() };
        assert_eq!(plan(&entry, Some(accept_encoding), &request).status, status);
    }
}

#[test]
fn several_ranges_of_a_coded_file_give_it_whole() {
    let scratch = Scratch::new();
    scratch.file("a.css", vec![b'x'; 20_000]);
    scratch.file("a.css.gz", vec![b'y'; 10_000]);
    let entry = entry(&scratch, "a.css", options(Place::Memory));
    let several = plan(&entry, Some(b"gzip"), &ranged(b"bytes=0-0,5000-5000"));
    assert_eq!((several.status, several.content_length), (200, 10_000));
    let one = plan(&entry, Some(b"gzip"), &ranged(b"bytes=0-0"));
    assert_eq!((one.status, body(&one)), (206, b"y".to_vec()));
    assert_eq!(header(&one, "Content-Encoding"), Some("gzip"));
}

#[test]
fn an_applications_type_takes_the_place_of_the_files() {
    let scratch = Scratch::new();
    scratch.file("a.txt", vec![b'x'; 10_000]);
    let entry = entry(&scratch, "a.txt", options(Place::Memory));
    let given = Some(&b"application/pdf"[..]);
    let whole = plan_as(&entry, None, &Conditions::default(), given);
    assert_eq!(header(&whole, "Content-Type"), Some("application/pdf"));
    let several = plan_as(&entry, None, &ranged(b"bytes=0-0,5000-5000"), given);
    let content_type = header(&several, "Content-Type").unwrap();
    assert!(content_type.starts_with("multipart/byteranges; boundary="));
    let text = String::from_utf8(body(&several)).unwrap();
    assert_eq!(text.matches("Content-Type: application/pdf\r\n").count(), 2);
    let split = plan_as(&entry, None, &Conditions::default(), Some(b"text/x\r\nSet-Cookie: a=b"));
    assert_eq!(header(&split, "Content-Type"), Some("text/plain; charset=utf-8"));
}

fn range_field() -> impl Strategy<Value = Vec<u8>> {
    let spec = prop_oneof![
        (0u32..6000, 0u32..6000).prop_map(|(a, b)| format!("{a}-{b}")),
        (0u32..6000).prop_map(|a| format!("{a}-")),
        (0u32..6000).prop_map(|a| format!("-{a}")),
        "[0-9,-]{0,8}",
    ];
    prop_oneof![
        proptest::collection::vec(spec, 1..12).prop_map(|specs| format!(
            "bytes={}",
            specs.join(",")
        )
        .into_bytes()),
        proptest::collection::vec(any::<u8>(), 0..40),
    ]
}

proptest! {
    /// For every request the parts add up to the length, and each range has the file's bytes.
    #[test]
    fn parts_add_up_and_lie_inside_of_the_file(field in range_field(), in_memory: bool) {
        let scratch = Scratch::new();
        let content: Vec<u8> = (0..5000u32).map(|i| (i % 251) as u8).collect();
        scratch.file("a.bin", &content);
        let place = if in_memory { Place::Memory } else { Place::File };
        let entry = entry(&scratch, "a.bin", options(place));
        let plan = plan(&entry, None, &ranged(&field));
        let written = body(&plan);
        prop_assert_eq!(written.len() as u64, plan.content_length);
        prop_assert_eq!(plan.body.iter().map(Part::len).sum::<u64>(), plan.content_length);
        match plan.status {
            200 => prop_assert_eq!(written, content),
            416 => prop_assert!(written.is_empty()),
            206 => for (part, start) in pieces(&plan) {
                prop_assert_eq!(&part, &content[start..start + part.len()]);
            },
            other => prop_assert!(false, "status {}", other),
        }
    }
}

/// The file's parts in a 206 with their offsets according to Content-Range.
fn pieces(plan: &Plan) -> Vec<(Vec<u8>, usize)> {
    let start = |text: &str| -> usize {
        let (_, range) = text.rsplit_once("bytes ").unwrap();
        range.split_once('-').unwrap().0.parse().unwrap()
    };
    let alone = |part: &Part| body(&Plan { body: smallvec![part.clone()], ..plan.clone() });
    match plan.body.as_slice() {
        [part] => vec![(alone(part), start(header(plan, "Content-Range").unwrap()))],
        parts => parts
            .chunks_exact(2)
            .map(|pair| (alone(&pair[1]), start(std::str::from_utf8(&alone(&pair[0])).unwrap())))
            .collect(),
    }
}
