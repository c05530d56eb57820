//! [`BlockedCall`]: the system call in which the worker's thread sits, and the library that has made it.
//!
//! Called by the watcher. Invariant: memory is read by process_vm_readv(2), which fails where a load would fault.

use crate::process;
use rustix::process::getpid;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

/// How much of the stack is searched for the caller.
const STACK_BYTES: usize = 16 * 1024;
/// An instruction that calls is this long at most.
const CALL_BYTES: usize = 7;

pub(super) fn open() -> io::Result<File> {
    let pid = getpid().as_raw_nonzero();
    process::open_of_self(&format!("/proc/self/task/{pid}/syscall"))
}

#[derive(Debug)]
pub(super) struct BlockedCall {
    name: String,
    /// The file name of the library.
    library: Option<String>,
}

impl BlockedCall {
    /// `None` if the thread runs.
    pub(super) fn read(file: &File) -> Option<Self> {
        let mut buffer = [0; 256];
        let len = file.read_at(&mut buffer, 0).ok()?;
        let (number, stack) = parse(std::str::from_utf8(&buffer[..len]).ok()?)?;
        Some(Self { name: name(number), library: caller(stack) })
    }
}

impl fmt::Display for BlockedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let library = self.library.as_deref().unwrap_or("PHP or its host");
        write!(f, "{} in {library}", self.name)
    }
}

/// The number and the stack pointer in the line of proc_pid_syscall(5): `202 0x7f… … SP PC`, `-1 SP PC`, or `running`.
fn parse(line: &str) -> Option<(i64, usize)> {
    let mut words = line.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let stack = words.rev().nth(1)?.strip_prefix("0x")?;
    Some((number, usize::from_str_radix(stack, 16).ok()?))
}

/// Calls that wait, by the names of their manual pages.
fn name(number: i64) -> String {
    const NAMES: &[(libc::c_long, &str)] = &[
        (libc::SYS_futex, "futex"),
        (libc::SYS_read, "read"),
        (libc::SYS_pread64, "pread"),
        (libc::SYS_readv, "readv"),
        (libc::SYS_write, "write"),
        (libc::SYS_writev, "writev"),
        (libc::SYS_pwrite64, "pwrite"),
        (libc::SYS_openat, "open"),
        (libc::SYS_close, "close"),
        (libc::SYS_fsync, "fsync"),
        (libc::SYS_fdatasync, "fdatasync"),
        (libc::SYS_newfstatat, "stat"),
        (libc::SYS_getdents64, "getdents"),
        (libc::SYS_ppoll, "poll"),
        (libc::SYS_pselect6, "select"),
        (libc::SYS_epoll_pwait, "epoll_wait"),
        (libc::SYS_epoll_pwait2, "epoll_pwait2"),
        (libc::SYS_clock_nanosleep, "nanosleep"),
        (libc::SYS_nanosleep, "nanosleep"),
        (libc::SYS_connect, "connect"),
        (libc::SYS_accept, "accept"),
        (libc::SYS_accept4, "accept"),
        (libc::SYS_recvfrom, "recv"),
        (libc::SYS_recvmsg, "recvmsg"),
        (libc::SYS_recvmmsg, "recvmmsg"),
        (libc::SYS_sendto, "send"),
        (libc::SYS_sendmsg, "sendmsg"),
        (libc::SYS_sendfile, "sendfile"),
        (libc::SYS_splice, "splice"),
        (libc::SYS_wait4, "waitpid"),
        (libc::SYS_waitid, "waitid"),
        (libc::SYS_flock, "flock"),
        (libc::SYS_fcntl, "fcntl"),
        (libc::SYS_semop, "semop"),
        (libc::SYS_semtimedop, "semop"),
        (libc::SYS_msgrcv, "msgrcv"),
        (libc::SYS_msgsnd, "msgsnd"),
        (libc::SYS_mq_timedreceive, "mq_receive"),
        (libc::SYS_mq_timedsend, "mq_send"),
        (libc::SYS_rt_sigtimedwait, "sigtimedwait"),
        (libc::SYS_rt_sigsuspend, "sigsuspend"),
        (libc::SYS_getrandom, "getrandom"),
        (libc::SYS_io_getevents, "io_getevents"),
        (libc::SYS_io_uring_enter, "io_uring_enter"),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_poll, "poll"),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_select, "select"),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_epoll_wait, "epoll_wait"),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, "open"),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_pause, "pause"),
    ];
    if number < 0 {
        return "a page fault".to_owned();
    }
    match NAMES.iter().find(|(known, _)| *known == number) {
        Some((_, name)) => format!("{name}()"),
        None => format!("system call {number}"),
    }
}

/// The innermost library on the stack but for the C library and this program: which replaces the functions of the
/// former and so stands between them and all others.
fn caller(stack: usize) -> Option<String> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let code: Vec<Code> = maps.lines().filter_map(Code::of_line).collect();
    let words = peek(stack, STACK_BYTES);
    let words = words.chunks_exact(size_of::<usize>()).filter_map(|word| word.try_into().ok());
    for address in words.map(usize::from_ne_bytes) {
        let library = code.iter().find(|code| code.start <= address && address < code.end);
        if let Some(library) = library.filter(|library| library.is_others())
            && follows_call(address)
        {
            return Some(library.file.to_owned());
        }
    }
    None
}

/// An executable mapping of a file.
struct Code<'a> {
    start: usize,
    end: usize,
    file: &'a str,
}

impl<'a> Code<'a> {
    /// A line of proc_pid_maps(5): `start-end flags offset device inode path`.
    fn of_line(line: &'a str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let is_code = words.next()?.contains('x');
        let (_, file) = line.rsplit_once('/').filter(|_| is_code)?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        Some(Self { start: address(start)?, end: address(end)?, file })
    }

    fn is_others(&self) -> bool {
        !self.file.starts_with("libc.so")
            && !self.file.starts_with("ld-linux")
            && !self.file.starts_with("outboard-php")
    }
}

/// Whether this is where a function returns to, rather than any number.
fn follows_call(address: usize) -> bool {
    let before = peek(address.wrapping_sub(CALL_BYTES), CALL_BYTES);
    let Ok(before) = <[u8; CALL_BYTES]>::try_from(before) else { return false };
    if cfg!(target_arch = "aarch64") {
        // BL, and BLR.
        let instruction = u32::from_le_bytes([before[3], before[4], before[5], before[6]]);
        return instruction >> 26 == 0b10_0101 || instruction & 0xffff_fc1f == 0xd63f_0000;
    }
    // CALL with an offset, and of a register or of memory, whose operand has 0, 1 or 4 bytes, or one more.
    let is_indirect = |at: usize| before[at] == 0xff && before[at + 1] & 0x38 == 0x10;
    before[2] == 0xe8 || [5, 4, 3, 1, 0].into_iter().any(is_indirect)
}

/// What can be read of this memory, from its beginning.
fn peek(address: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0_u8; len];
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: len };
    let remote = libc::iovec { iov_base: std::ptr::without_provenance_mut(address), iov_len: len };
    let pid = getpid().as_raw_nonzero().get();
    // SAFETY: `bytes` has `len` bytes; the other memory is read by the kernel, which fails if it is not there.
    let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    bytes.truncate(usize::try_from(read).unwrap_or(0));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_thread_is_in_no_call() {
        assert_eq!(parse("running\n"), None);
    }

    #[test]
    fn a_call_has_a_number_and_a_stack() {
        let line = "220 0x10 0x7ffc10 0x1 0x0 0x0 0x0 0x7ffe40 0x7f00\n";
        assert_eq!(parse(line), Some((220, 0x7ffe40)));
        assert_eq!(parse("-1 0x7ffe40 0x7f00\n"), Some((-1, 0x7ffe40)));
    }

    #[test]
    fn a_call_has_the_name_of_its_page_or_its_number() {
        assert_eq!(name(libc::SYS_futex), "futex()");
        assert_eq!(name(9999), "system call 9999");
        assert_eq!(name(-1), "a page fault");
    }

    #[test]
    fn where_a_function_returns_to_follows_a_call() {
        #[inline(never)]
        fn returns_to() -> Vec<usize> {
            let local = 0_usize;
            let bytes = peek((&raw const local).addr(), 512);
            bytes
                .chunks_exact(8)
                .map(|word| usize::from_ne_bytes(word.try_into().unwrap()))
                .collect()
        }
        let code = returns_to as *const () as usize;
        let near = returns_to().into_iter().filter(|word| word.abs_diff(code) < 1 << 20);
        assert!(near.into_iter().any(follows_call));
        assert!(!follows_call(code), "a function begins behind no call");
    }

    #[test]
    fn a_mapping_of_code_is_that_of_a_file() {
        let line = "7f10-7f20 r-xp 00001000 fe:01 42 /usr/lib/x86_64-linux-gnu/libzmq.so.5.2.4";
        let code = Code::of_line(line).expect("it is code");
        assert_eq!((code.start, code.end, code.file), (0x7f10, 0x7f20, "libzmq.so.5.2.4"));
        assert!(Code::of_line("7f10-7f20 rw-p 00001000 fe:01 42 /usr/lib/libzmq.so").is_none());
        assert!(Code::of_line("7f10-7f20 r-xp 00000000 00:00 0 [vdso]").is_none());
    }
}
