//! Writes to transports that accept nothing.

use super::*;
use outboard_reactor::run;
use pipe::INITIAL_BYTES;
use rustix::fd::AsFd;

#[test]
fn a_file_for_a_reset_stream_does_not_wait() {
    run(async {
        let (near, far) = Pipe::pair();
        let (transport, file) = (Transport::pipe(far), std::fs::File::open("/dev/zero").unwrap());
        let mut offset = 0;
        let mut send = || transport.try_send_file(file.as_fd(), &mut offset, 1 << 20);
        assert_eq!(send().unwrap(), Some(INITIAL_BYTES));
        assert_eq!(send().unwrap(), None);
        near.close();
        assert!(send().is_err());
    })
    .unwrap();
}
