//! Methods and forms of the request target.

use crate::{plain, plain_and_close, site};

#[test]
fn head_has_the_head_of_get_and_no_body() {
    for target in ["/file.txt", "/hello.php"] {
        let mut wire = site().wire();
        wire.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let of_get = wire.head();
        let length = of_get.split_once("Content-Length: ").expect("it has a length").1;
        let length: usize = length.lines().next().unwrap().parse().unwrap();
        wire.exactly(length);
        wire.send(format!("HEAD {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let of_head = wire.head();
        // What a script would have written is not known to a server that threw it away.
        let without_length = of_get.replace(&format!("Content-Length: {length}\r\n"), "");
        assert!(of_head == of_get || of_head == without_length, "{of_get}{of_head}");
        wire.send("GET /echo.php HTTP/1.1\r\nHost: a\r\n\r\n");
        wire.expect_undated(&plain("GET /echo.php HTTP/1.1\n"));
    }
}

/// RFC 9112, section 3.2.2: Host is ignored then.
#[test]
fn the_authority_of_an_absolute_target_is_the_host() {
    let transcript = site().exchange(
        "GET http://example.org:81/server.php?names=HTTP_HOST,SERVER_NAME HTTP/1.1\r\n\
         Host: other.example\r\nConnection: close\r\n\r\n",
    );
    let body = "HTTP_HOST=example.org:81\nSERVER_NAME=example.org\n";
    assert_eq!(transcript, plain_and_close(body));
}

#[test]
fn an_absolute_target_is_a_path_to_php() {
    let transcript = site().exchange(
        "GET http://a/server.php?names=REQUEST_URI,SCRIPT_NAME HTTP/1.1\r\n\
         Host: a\r\nConnection: close\r\n\r\n",
    );
    let body = "REQUEST_URI=/server.php?names=REQUEST_URI,SCRIPT_NAME\nSCRIPT_NAME=/server.php\n";
    assert_eq!(transcript, plain_and_close(body));
}

#[test]
fn options_asterisk_is_served_and_keeps_the_connection() {
    let mut wire = site().wire();
    wire.send("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = wire.head();
    assert!(head.starts_with("HTTP/1.1 2"), "RFC 9110, section 9.3.7: {head}");
    wire.send("GET /hello.php HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let rest = wire.to_end();
    assert!(rest.ends_with(&plain_and_close("Hello, world\n")), "{rest}");
}

#[test]
fn any_method_reaches_a_script() {
    for method in ["PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "X-OWN"] {
        let transcript = site().exchange(format!(
            "{method} /echo.php HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
             Content-Length: 4\r\n\r\nbody"
        ));
        assert_eq!(transcript, plain_and_close(&format!("{method} /echo.php HTTP/1.1\nbody")));
    }
}

#[test]
fn trace_and_connect_are_not_served() {
    for line in ["TRACE /echo.php HTTP/1.1", "CONNECT a:443 HTTP/1.1"] {
        let transcript = site().exchange(format!("{line}\r\nHost: a\r\nConnection: close\r\n\r\n"));
        assert!(transcript.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"), "{transcript}");
        assert!(transcript.contains("X-Outboard-Reason: method_refused\r\n"), "{transcript}");
        assert!(transcript.contains("\r\nAllow: GET, "), "RFC 9110, section 15.5.6: {transcript}");
    }
}
