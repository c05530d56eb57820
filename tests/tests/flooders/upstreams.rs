//! Floods of other servers: answers that never end, for a script and for clients of a proxy route.

use super::*;
use std::net::TcpListener;

/// Where a server is whose answers never end.
fn endless_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    spawn(move || {
        for stream in listener.incoming().flatten() {
            spawn(move || endless(stream));
        }
    });
    address
}

fn endless(mut stream: TcpStream) {
    let mut head = [0; 4096];
    let _ = stream.read(&mut head);
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n");
    let piece = [b'u'; 64 * 1024];
    while stream.write_all(&piece).is_ok() {}
}

#[test]
fn an_upstream_that_never_ends() {
    let target = format!("/download?from={}", endless_server());
    is_borne("an endless upstream", resident(), |site| {
        Flood::of_requests(site.address(), &[&target])
    });
}

#[test]
fn a_proxy_route_whose_upstream_never_ends() {
    let route = format!(
        "[[app.site.proxy]]\npath = \"/endless\"\nupstream = \"http://{}\"\n\
         [app.site.pool]\nmin = 1\nmax = 1",
        endless_server()
    );
    is_borne("an endless proxy", serving(&route), |site| {
        let address = site.address();
        Flood::of_clients(8, move || {
            let request = Request::get("/endless").to_bytes("site");
            if let Some(stream) = unread(address, &request) {
                drain(stream, DEADLINE / 2);
            }
        })
    });
}
