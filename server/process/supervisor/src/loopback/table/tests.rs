use super::*;
use proptest::prelude::*;

const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000    33        0 1129 1 0 100 0 0 10 0
   1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000    33        0 4711 1 0 20 4 30 10 -1
   2: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 20 4 30 10 -1
   3: 0100007F:C351 0100007F:1F90 06 00000000:00000000 03:000001A2 00000000     0        0 0 3 0
   4: 0100007F:C352 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 0 3 0
";

const TABLE6: &str = "\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000001000000:C350 00000000000000000000000001000000:1F90 01 00000000:00000000 00:00000000 00000000    33        0 815 1 0 20 4 30 10 -1
   1: 0000000000000000FFFF00000100007F:C353 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000    33        0 816 1 0 20 4 30 10 -1
";

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[cfg(target_endian = "little")]
#[test]
fn the_clients_end_is_found_by_its_own_address() {
    let table = [
        ("127.0.0.1:50000", TABLE, Some(4711)),
        ("[::ffff:127.0.0.1]:50000", TABLE, Some(4711)),
        ("127.0.0.2:50000", TABLE, None),
        ("127.0.0.1:50009", TABLE, None),
        ("[::1]:50000", TABLE6, Some(815)),
        ("127.0.0.1:50003", TABLE6, Some(816)),
        ("[::1]:50003", TABLE6, None),
    ];
    for (peer, text, inode) in table {
        let found = socket_in(text, address(peer));
        assert_eq!(found, inode.map(|inode| Socket { inode, uid: 33 }), "{peer}");
    }
}

#[cfg(target_endian = "little")]
#[test]
fn a_closed_or_unowned_socket_is_not_found() {
    assert_eq!(socket_in(TABLE, address("127.0.0.1:50001")), None);
    assert_eq!(socket_in(TABLE, address("127.0.0.1:50002")), None);
    assert_eq!(socket_in(TABLE, address("0.0.0.0:8080")), None, "it listens");
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_fail(text in "\\PC*", line in "[0-9A-F: \n]{0,200}") {
        let peer = address("127.0.0.1:80");
        let _ = socket_in(&text, peer);
        let _ = socket_in(&format!("head\n{line}"), peer);
    }
}
