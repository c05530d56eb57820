//! Code that knows nothing of coroutines waits in them without holding its worker: each row of
//! `docs/reference/waiting.md` against the real service, and against php-cli, which blocks.
//!
//! A test knows that a coroutine waits because the service has answered and the answer is held
//! back at a [`outboard_e2e::Gate`]; nothing here waits for a time to pass.

#![forbid(unsafe_code)]

mod calls;
mod connections;
mod reference;
mod rows;
mod stage;
mod stalls;
mod subject;

use rows::rows;

/// The promises that rows name.
mod checks {
    pub(crate) use crate::calls::*;
    pub(crate) use crate::connections::*;
}

rows! {
    Http {
        curl_exec "curl_exec" curl_exec: answers others time_out refused bad_name closing cancelled deadline shared;
        curl_multi "curl_multi_exec, curl_multi_select" curl_multi: answers others time_out refused bad_name closing cancelled deadline;
        curl_multi_shared "curl_multi_*, one handle for all requests" curl_multi_shared: answers others time_out refused bad_name closing cancelled deadline by_two;
        file_get_contents "file_get_contents" file_get_contents: answers others time_out refused bad_name closing cancelled deadline;
        fopen "fopen, fgets, stream_get_contents" fopen: answers others time_out refused bad_name closing cancelled deadline;
        fsockopen "fsockopen" fsockopen: answers others time_out refused bad_name closing cancelled deadline shared;
        stream_socket_client "stream_socket_client" stream_socket_client: answers others time_out refused bad_name closing cancelled deadline shared;
        stream_select "stream_select" stream_select: answers others time_out refused bad_name closing cancelled deadline;
    }
    Https {
        curl_exec_tls "curl_exec" curl_exec: answers others time_out refused bad_name closing cancelled deadline shared;
        file_get_contents_tls "file_get_contents" file_get_contents: answers others time_out refused bad_name closing cancelled deadline;
        fopen_tls "fopen, fgets, stream_get_contents" fopen: answers others time_out refused bad_name closing cancelled deadline;
        stream_socket_client_tls "stream_socket_client" stream_socket_client: answers others time_out refused bad_name closing cancelled deadline shared;
    }
    MariaDb {
        mysqli "mysqli" mysqli: answers others time_out refused bad_name bad_credentials closing cancelled deadline shared;
        pdo_mysql "PDO (mysql)" pdo_mysql: answers others time_out refused bad_name bad_credentials closing cancelled deadline shared;
    }
    Postgres {
        pgsql "pgsql" pgsql: answers others server_time_out refused bad_name bad_credentials closing cancelled deadline shared;
        pdo_pgsql "PDO (pgsql)" pdo_pgsql: answers others server_time_out refused bad_name bad_credentials closing cancelled deadline shared;
    }
    Redis {
        redis "redis" redis: answers others time_out refused bad_name bad_credentials closing cancelled deadline shared;
    }
    Memcached {
        memcached "memcached" memcached: answers others time_out refused bad_name closing cancelled deadline shared;
    }
    Nobody {
        sleep "sleep" sleep: short_answers long_others long_cancelled long_deadline;
        usleep "usleep" usleep: short_answers long_others long_cancelled long_deadline;
        time_nanosleep "time_nanosleep" time_nanosleep: short_answers long_others long_cancelled long_deadline;
        exec "exec" exec: gated_answers gated_others gated_cancelled;
        shell_exec "shell_exec" shell_exec: gated_answers gated_others gated_cancelled;
        proc_open "proc_open, proc_close" proc_open: gated_answers gated_others gated_cancelled;
        popen "popen, pclose" popen: gated_answers gated_others gated_cancelled;
        pipe "fopen, fgets of a named pipe" pipe: gated_answers gated_others gated_cancelled;
        flock "flock" flock: locked_answers locked_others locked_cancelled;
        fwrite "fwrite to a pipe that is full" fwrite: gated_answers gated_others gated_cancelled;
        socket_recv "socket_recv" socket_recv: gated_answers gated_others gated_cancelled;
        socket_recvmsg "socket_recvmsg" socket_recvmsg: gated_answers gated_others gated_cancelled;
        socket_recvfrom "socket_recvfrom (UDP)" socket_recvfrom: gated_answers gated_others gated_cancelled;
        stream_socket_recvfrom "stream_socket_recvfrom (UDP)" stream_socket_recvfrom: gated_answers gated_others gated_cancelled;
        socket_select "socket_select" socket_select: gated_answers gated_others gated_cancelled;
        socket_accept "socket_accept" socket_accept: gated_answers gated_others gated_cancelled;
        stream_socket_accept "stream_socket_accept" stream_socket_accept: gated_answers gated_others gated_cancelled;
        socket_write "socket_write to a socket that is full" socket_write: gated_answers gated_others gated_cancelled;
        socket_sendmsg "socket_sendmsg to a socket that is full" socket_sendmsg: gated_answers gated_others gated_cancelled;
        pcntl_wait "pcntl_wait" pcntl_wait: gated_answers gated_others gated_cancelled;
        pcntl_sigtimedwait "pcntl_sigtimedwait" pcntl_sigtimedwait: gated_answers gated_others gated_cancelled;
        signal "stream_select, ended by a signal" signal: gated_answers gated_others gated_cancelled;
        msg_receive "msg_receive" msg_receive: gated_answers gated_others gated_cancelled;
        msg_send "msg_send to a queue that is full" msg_send: gated_answers gated_others gated_cancelled;
        sem_acquire "sem_acquire" sem_acquire: gated_answers gated_others gated_cancelled;
        ffi_epoll_wait "epoll_wait, by FFI" ffi_epoll_wait: gated_answers gated_others gated_cancelled;
        ffi_epoll_pwait "epoll_pwait, by FFI" ffi_epoll_pwait: gated_answers gated_others gated_cancelled;
        ffi_epoll_pwait2 "epoll_pwait2, by FFI" ffi_epoll_pwait2: gated_answers gated_others gated_cancelled;
        ffi_ppoll "ppoll, by FFI" ffi_ppoll: gated_answers gated_others gated_cancelled;
        ffi_ppollchk "__ppoll_chk, by FFI" ffi_ppollchk: gated_answers gated_others gated_cancelled;
        ffi_pselect "pselect, by FFI" ffi_pselect: gated_answers gated_others gated_cancelled;
        ffi_recvmmsg "recvmmsg, sendmmsg, by FFI" ffi_recvmmsg: gated_answers gated_others gated_cancelled;
        ffi_waitid "waitid, by FFI" ffi_waitid: gated_answers gated_others gated_cancelled;
        ffi_lock "lockf, fcntl (F_SETLKW), by FFI" ffi_lock: gated_answers gated_others gated_cancelled;
        ffi_condition "pthread_cond_timedwait, sem_timedwait, by FFI" ffi_condition: gated_answers gated_others;
        gethostbyname "gethostbyname, and names in every row above" gethostbyname: name_answers name_others;
        dns_get_record "dns_get_record, checkdnsrr" dns_get_record: name_answers name_others;
        gethostbyaddr "gethostbyaddr" gethostbyaddr: name_answers name_others;
        socket_addrinfo_lookup "socket_addrinfo_lookup" socket_addrinfo_lookup: name_answers name_others;
        session "session_start (files)" session: session_turns session_cancelled;
    }
}
