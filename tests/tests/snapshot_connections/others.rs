//! Clients that connect again by themselves, sockets that each request gets anew, and those that are refused.

use super::*;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::thread;
use std::time::Duration;

#[test]
fn redis_connects_again_with_its_password_and_database() {
    let redis = Redis::start();
    let gate = Gate::before(&redis.socket());
    let port = gate.address().port();
    for isolation in ISOLATIONS {
        for connect in ["connect", "pconnect"] {
            let code = format!(
                "$redis = new Redis; $redis->{connect}('127.0.0.1', {port}); $redis->auth('e2e-password'); $redis->select(3); $redis->set('name', 'value');
                 $boot = $redis->rawCommand('CLIENT', 'ID'); Outboard\\snapshot();
                 echo json_encode([$redis->get('name'), $redis->rawCommand('CLIENT', 'ID') === $boot, $redis->getDBNum()]);"
            );
            let site = serving(isolation, 1, "", &code);
            for answer in ask_often(&site, 3) {
                assert_eq!(answer.to_string(), r#"["value",false,3]"#, "{isolation} {connect}");
            }
            assert!(!site.child().output().contains("snapshot ("), "{}", site.child().output());
        }
    }
}

#[test]
fn memcached_connects_again() {
    let memcached = Memcached::start();
    let gate = Gate::before(&memcached.socket());
    let port = gate.address().port();
    for isolation in ISOLATIONS {
        for id in ["", "'pool'"] {
            let code = format!(
                "$cache = new Memcached({id}); $cache->addServer('127.0.0.1', {port}); $cache->set('name', 'value'); Outboard\\snapshot();
                 $first = $cache->get('name'); $code = $cache->getResultCode(); echo json_encode([$first, $code]); $cache->set('name', 'value');"
            );
            let site = serving(isolation, 1, "", &code);
            for answer in ask_often(&site, 3) {
                assert_eq!(answer.to_string(), r#"["value",0]"#, "{isolation}");
            }
        }
    }
}

/// A web server that keeps connections open, and answers with the number of the connection.
fn counting_connections() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || {
                let mut piece = [0; 4096];
                while stream.read(&mut piece).is_ok_and(|read| read > 0) {
                    let body = number.to_string();
                    let answer =
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

#[test]
fn curl_does_not_use_a_connection_of_the_boot() {
    for isolation in ISOLATIONS {
        let port = counting_connections();
        let code = format!(
            "$url = 'http://127.0.0.1:{port}/'; $easy = curl_init($url); curl_setopt($easy, CURLOPT_RETURNTRANSFER, true); $first = curl_exec($easy);
             $multi = curl_multi_init(); $other = curl_init($url); curl_setopt($other, CURLOPT_RETURNTRANSFER, true);
             $perform = function () use ($multi, $other) {{
                 curl_multi_add_handle($multi, $other);
                 do {{ curl_multi_exec($multi, $active); if ($active) curl_multi_select($multi, 1); }} while ($active);
                 $text = curl_multi_getcontent($other); curl_multi_remove_handle($multi, $other); return $text;
             }};
             $perform();
             Outboard\\snapshot(); $cpu = getrusage()['ru_utime.tv_usec']; echo json_encode([curl_exec($easy), $perform()]);"
        );
        let site = serving(isolation, 1, "", &code);
        let mut seen: Vec<String> = vec!["0".into(), "1".into()];
        for answer in ask_often(&site, 3) {
            for number in answer.as_array().unwrap() {
                let number = number.as_str().unwrap().to_owned();
                assert!(
                    !number.is_empty() && !seen.contains(&number),
                    "{isolation} {answer} {seen:?}"
                );
                seen.push(number);
            }
        }
        assert!(!site.child().output().contains("snapshot ("), "{}", site.child().output());
    }
}

#[test]
fn a_stream_is_refused_with_its_place_and_opened_in_a_hook() {
    for isolation in ISOLATIONS {
        let port = counting_connections();
        let connect = format!("stream_socket_client('tcp://127.0.0.1:{port}')");
        let talk = "$talk = function ($stream) { @fwrite($stream, 'x'); return substr((string) @fread($stream, 100), -1); };";
        let refused = format!(
            "{talk}\n$stream = {connect}; $talk($stream); Outboard\\snapshot(); echo json_encode($talk($stream));"
        );
        let site = serving(isolation, 1, "", &refused);
        assert_eq!(ask_often(&site, 2), ["", ""]);
        logged(&site, &["stream_socket_client at ", "worker.php:2"]);

        let hooked = format!(
            "{talk} $stream = {connect}; $talk($stream); $n = 0; Outboard\\on_resume(function () use (&$stream) {{ $stream = {connect}; }});
             Outboard\\on_resume(function () use (&$n) {{ $n++; }});"
        );
        for handle in [
            "Outboard\\snapshot(); echo json_encode([$talk($stream) !== '', $n]);",
            "while (Outboard\\handle_request(function () use (&$stream, &$n, $talk) { echo json_encode([$talk($stream) !== '', $n]); }));",
            "Outboard\\serve(function () use (&$stream, &$n, $talk) { return json_encode([$talk($stream) !== '', $n]); });",
        ] {
            let site = serving(isolation, 1, "", &format!("{hooked} {handle}"));
            for answer in ask_often(&site, 3) {
                assert_eq!(answer.to_string(), "[true,1]", "{isolation} {handle}");
            }
            assert!(
                !site.child().output().contains("stream_socket_client at"),
                "{}",
                site.child().output()
            );
        }
    }
}

#[test]
fn a_hook_that_fails_answers_instead_of_the_handler() {
    for handle in [
        "Outboard\\snapshot(); echo 'not reached';",
        "while (Outboard\\handle_request(function () { echo 'not reached'; }));",
        "Outboard\\serve(fn () => 'not reached');",
    ] {
        let code = format!(
            "Outboard\\on_resume(function () {{ throw new Exception('no connection'); }}); {handle}"
        );
        let site = serving("rewind", 1, "", &code);
        for _ in 0..2 {
            let response = site.client().send(&Request::get("/")).expect(500);
            assert!(!response.text().contains("not reached"), "{}", response.text());
        }
        logged(&site, &["no connection"]);
    }
}

#[test]
fn a_pair_of_sockets_is_each_request_s_own() {
    for isolation in ISOLATIONS {
        let code = "$pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0); fwrite($pair[0], 'of the boot'); Outboard\\snapshot();
            stream_set_blocking($pair[1], false); $before = fread($pair[1], 100); fwrite($pair[0], 'own'); echo json_encode([$before, fread($pair[1], 100)]); fwrite($pair[0], 'left');";
        for answer in ask_often(&serving(isolation, 1, "", code), 3) {
            assert_eq!(answer.to_string(), r#"["","own"]"#, "{isolation}");
        }
    }
}

#[test]
fn datagrams_are_sent_and_no_other_request_gets_an_answer() {
    for isolation in ISOLATIONS {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let code = format!(
            "$udp = stream_socket_client('udp://{}'); fwrite($udp, 'boot'); Outboard\\snapshot();
             stream_set_blocking($udp, false); echo json_encode(fread($udp, 100)); fwrite($udp, 'request');",
            receiver.local_addr().unwrap()
        );
        let site = serving(isolation, 1, "", &code);
        let mut piece = [0; 100];
        assert_eq!(receiver.recv_from(&mut piece).unwrap().0, 4);
        for _ in 0..3 {
            let answer = ask(&site, "/");
            assert!(answer == "" || answer == false, "{answer}");
            let (bytes, sender) = receiver.recv_from(&mut piece).unwrap();
            assert_eq!(bytes, 7);
            receiver.send_to(b"late", sender).unwrap();
        }
    }
}

/// Each piece of the boot, what a request writes to it, and what one reads first.
#[test]
fn what_a_request_writes_to_a_file_of_the_boot_is_its_own() {
    let files = [
        ("tmpfile()", "boot"),
        ("fopen('php://temp/maxmemory:1', 'w+')", "boot"),
        (
            "(function () { $name = tempnam(sys_get_temp_dir(), 'gone'); $file = fopen($name, 'w+'); unlink($name); return $file; })()",
            "boot",
        ),
    ];
    for isolation in ISOLATIONS {
        for (file, expected) in files {
            let code = format!(
                "$file = {file}; fwrite($file, 'boot'); fflush($file); fseek($file, 1); Outboard\\snapshot();
                 $at = ftell($file); rewind($file); $found = stream_get_contents($file); fwrite($file, 'SECRET'); fflush($file);
                 rewind($file); echo json_encode([$at, $found, strlen(stream_get_contents($file))]);"
            );
            for answer in ask_often(&serving(isolation, 1, "", &code), 3) {
                assert_eq!(
                    answer.to_string(),
                    format!("[1,\"{expected}\",10]"),
                    "{isolation} {file}"
                );
            }
        }
        let code = "$file = new SplTempFileObject(1); $file->fwrite('boot'); Outboard\\snapshot();
            $file->rewind(); $found = $file->fread(100); $file->fwrite('SECRET'); echo json_encode($found);";
        assert_eq!(ask_often(&serving(isolation, 1, "", code), 3), ["boot"; 3], "{isolation}");
    }
}

#[test]
fn pipes_of_the_boot_are_refused_with_their_place() {
    let cat = "proc_open(['cat'], [SPEC, SPEC], $pipes)";
    let opened = [
        (
            "proc_open at ",
            cat.replace("SPEC", "['pipe', 'r']").replacen(
                "'r'], ['pipe', 'r'",
                "'r'], ['pipe', 'w'",
                1,
            ),
        ),
        ("connection", cat.replace("SPEC", "['socket']")),
        (
            "pseudoterminal",
            "proc_open(['sh', '-c', 'stty -echo raw; exec cat'], [['pty'], ['pty']], $pipes)"
                .into(),
        ),
        (
            "popen at ",
            "$pipes = [$in = popen('cat >/dev/null', 'w'), popen('echo SECRET; cat', 'r')]".into(),
        ),
    ];
    for isolation in ISOLATIONS {
        for (place, open) in &opened {
            let code = format!(
                "$process = {open};\nstream_set_blocking($pipes[1], false); Outboard\\snapshot();
                 @fwrite($pipes[0], 'SECRET'); $many = [$pipes[1]]; $none = null; stream_select($many, $none, $none, 1);
                 echo json_encode((string) @fread($pipes[1], 100));"
            );
            let site = serving(isolation, 1, "", &code);
            assert_eq!(ask_often(&site, 3), ["", "", ""], "{isolation} {open}");
            logged(&site, &[place, "was opened before the snapshot"]);
        }
    }
}

#[test]
fn a_temporary_file_that_is_too_large_to_copy_is_refused() {
    for isolation in ISOLATIONS {
        let code = "$file = tmpfile(); fwrite($file, str_repeat('x', 2 << 20)); rewind($file); Outboard\\snapshot();
            echo json_encode((string) @fread($file, 10)); @fwrite($file, 'SECRET');";
        let site = serving(isolation, 1, "", code);
        assert_eq!(ask_often(&site, 2), ["", ""], "{isolation}");
        logged(&site, &["a temporary file was opened before the snapshot"]);
    }
}
