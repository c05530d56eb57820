//! Prints what one parse costs, in nanoseconds: the median of several runs on one thread.
//!
//! `cargo run --release -p outboard-http1 --example parse_cost`

use std::hint::black_box;
use std::time::Instant;

use outboard_http_semantics::DateCache;
use outboard_http1::{
    Chunk, ChunkLimits, ChunkedDecoder, HeadLimits, RequestHead, ResponseParser, normalize_path,
    write_chunk, write_content_length, write_head_end, write_header, write_last_chunk,
    write_status_line,
};

const WRK: &[u8] = b"GET /hello.php HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";

const BROWSER: &[u8] = b"GET /wp-admin/post.php?post=42&action=edit HTTP/1.1\r\n\
    Host: www.example.com\r\n\
    Connection: keep-alive\r\n\
    Cache-Control: max-age=0\r\n\
    sec-ch-ua: \"Chromium\";v=\"130\", \"Google Chrome\";v=\"130\", \"Not?A_Brand\";v=\"99\"\r\n\
    sec-ch-ua-mobile: ?0\r\n\
    sec-ch-ua-platform: \"Linux\"\r\n\
    Upgrade-Insecure-Requests: 1\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n\
    Sec-Fetch-Site: same-origin\r\n\
    Sec-Fetch-Mode: navigate\r\n\
    Referer: https://www.example.com/wp-admin/edit.php\r\n\
    Accept-Encoding: gzip, deflate, br, zstd\r\n\
    Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\n\
    Cookie: wordpress_test_cookie=WP%20Cookie%20check; wordpress_logged_in_0123456789abcdef=admin%7C1700000000%7Cabcdefghijklmnopqrstuvwxyz0123456789; wp-settings-1=editor%3Dtinymce; wp-settings-time-1=1700000000\r\n\
    \r\n";

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nServer: nginx\r\n\
    Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: text/html; charset=UTF-8\r\n\
    Content-Length: 12\r\nConnection: keep-alive\r\n\r\n";

fn measure(name: &str, mut work: impl FnMut()) {
    const CALLS: u32 = 200_000;
    let mut runs: Vec<f64> = (0..9)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..CALLS {
                work();
            }
            start.elapsed().as_nanos() as f64 / f64::from(CALLS)
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    println!("{name:<44} {:8.1} ns", runs[runs.len() / 2]);
}

fn measure_request(name: &str, bytes: &[u8]) {
    let limits = HeadLimits::default();
    let mut head = RequestHead::new();
    measure(&format!("request, {name} ({} bytes)", bytes.len()), || {
        let _ = black_box(head.parse(black_box(bytes), &limits));
    });
    measure("  httparse alone, not strict, no framing", || {
        let mut fields = [const { std::mem::MaybeUninit::uninit() }; 100];
        let mut request = httparse::Request::new(&mut []);
        let _ = black_box(request.parse_with_uninit_headers(black_box(bytes), &mut fields));
    });
}

fn main() {
    measure_request("wrk", WRK);
    measure_request("browser", BROWSER);

    let limits = HeadLimits::default();
    let mut head = RequestHead::new();
    measure("request, browser, in 64-byte reads", || {
        for end in (64..BROWSER.len()).step_by(64) {
            let _ = black_box(head.parse(black_box(&BROWSER[..end]), &limits));
        }
        let _ = black_box(head.parse(black_box(BROWSER), &limits));
    });

    let mut response = ResponseParser::new();
    measure(&format!("response ({} bytes)", RESPONSE.len()), || {
        let _ = black_box(response.parse(black_box(RESPONSE), &limits));
    });

    let mut path = Vec::new();
    measure("normalize_path /wp-content/uploads/a.jpg", || {
        let _ = black_box(normalize_path(black_box(b"/wp-content/uploads/a.jpg"), &mut path));
    });

    let mut chunked = Vec::new();
    for _ in 0..16 {
        write_chunk(&mut chunked, &[b'a'; 4096]);
    }
    write_last_chunk(&mut chunked, []).expect("there is no trailer to be invalid");
    let mut decoder = ChunkedDecoder::new(ChunkLimits::default());
    measure("chunked body, 16 chunks of 4 KiB", || {
        decoder.reset();
        let mut at = 0;
        while let Ok(Chunk::Data { range }) = decoder.decode(black_box(&chunked[at..])) {
            at += range.end;
        }
        black_box(at);
    });

    let mut out = Vec::new();
    let mut date = DateCache::new(784_111_777);
    measure("response head, 5 fields", || {
        out.clear();
        write_status_line(&mut out, 200);
        out.extend_from_slice(date.line(784_111_777));
        let type_written = write_header(&mut out, b"Content-Type", b"text/html; charset=UTF-8");
        let powered_written = write_header(&mut out, b"X-Powered-By", b"PHP/8.2.0");
        let cache_written = write_header(&mut out, b"Cache-Control", b"no-store, must-revalidate");
        write_content_length(&mut out, 12345);
        write_head_end(&mut out);
        let _ = black_box((type_written, powered_written, cache_written, &out));
    });
}
