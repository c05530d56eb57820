use super::*;
use proptest::prelude::*;

fn peer(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn message(kind: u16, body: &[u8]) -> Vec<u8> {
    let len = (HEADER_BYTES + body.len()) as u32;
    let mut message = [&len.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10], body].concat();
    message.resize(message.len().next_multiple_of(4), 0);
    message
}

/// A `struct inet_diag_msg`.
fn socket(at: &str, inode: u32) -> Vec<u8> {
    let at = peer(at);
    let mut body = vec![0; 72];
    body[4..6].copy_from_slice(&at.port().to_be_bytes());
    match at.ip() {
        IpAddr::V4(ip) => {
            body[0] = AF_INET;
            body[8..12].copy_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            body[0] = AF_INET6;
            body[8..24].copy_from_slice(&ip.octets());
        }
    }
    body[64..68].copy_from_slice(&33_u32.to_ne_bytes());
    body[68..72].copy_from_slice(&inode.to_ne_bytes());
    message(SOCK_DIAG_BY_FAMILY, &body)
}

fn read(answer: &[u8], at: &str) -> (Progress, Option<u64>) {
    let mut found = None;
    let progress = read_answer(answer, peer(at), &mut found).unwrap();
    (progress, found.map(|socket| socket.inode))
}

#[test]
fn the_socket_at_the_address_is_found_among_others() {
    let answer = [
        socket("10.0.0.1:5000", 1),
        socket("127.0.0.1:5000", 2),
        socket("[::1]:5000", 3),
        socket("[::ffff:127.0.0.9]:5000", 4),
    ]
    .concat();
    let table = [
        ("127.0.0.1:5000", Some(2)),
        ("[::ffff:127.0.0.1]:5000", Some(2)),
        ("[::1]:5000", Some(3)),
        ("127.0.0.9:5000", Some(4)),
        ("127.0.0.1:5001", None),
        ("127.0.0.2:5000", None),
    ];
    for (at, inode) in table {
        assert_eq!(read(&answer, at), (Progress::More, inode), "{at}");
    }
}

#[test]
fn an_answer_is_complete_when_the_kernel_says_so() {
    let answer = [socket("127.0.0.1:5000", 2), message(NLMSG_DONE, &[0; 4])].concat();
    assert_eq!(read(&answer, "127.0.0.1:5000"), (Progress::Complete, Some(2)));
}

#[test]
fn an_unowned_socket_is_not_found() {
    assert_eq!(read(&socket("127.0.0.1:5000", 0), "127.0.0.1:5000").1, None);
}

#[test]
fn the_kernels_refusal_is_an_error() {
    let refusal = message(NLMSG_ERROR, &(-2_i32).to_ne_bytes());
    let error = read_answer(&refusal, peer("127.0.0.1:1"), &mut None).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_message_that_is_longer_than_the_answer_is_an_error() {
    let mut cut = socket("127.0.0.1:5000", 2);
    cut.truncate(40);
    let error = read_answer(&cut, peer("127.0.0.1:5000"), &mut None).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}

proptest! {
    #[test]
    fn no_answer_makes_the_parser_fail(answer in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_answer(&answer, peer("127.0.0.1:5000"), &mut None);
    }
}
