//! Clusters of stand-in nodes, whose replies each test decides.

use super::*;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::thread;

/// A reply in the Redis protocol to a command, or the end of the connection.
type Reply = Box<dyn FnMut(&[String]) -> Option<String> + Send>;

/// A node, and the commands that it received, without the ones of the handshake.
#[derive(Clone)]
struct Node {
    address: String,
    received: Arc<Mutex<Vec<String>>>,
}

impl Node {
    fn start(reply: impl FnMut(&[String]) -> Option<String> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let node =
            Self { address: listener.local_addr().unwrap().to_string(), received: Arc::default() };
        let (received, reply) =
            (node.received.clone(), Arc::new(Mutex::new(Box::new(reply) as Reply)));
        // The thread ends with the test's process; a node outlives the connections to it.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (received, reply) = (received.clone(), reply.clone());
                thread::spawn(move || serve(stream, &received, &reply));
            }
        });
        node
    }

    fn received(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, received: &Mutex<Vec<String>>, reply: &Mutex<Reply>) {
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    while let Some(words) = read_command(&mut reader) {
        let answer = match words[0].as_str() {
            "SCRIPT" => Some("$3\r\nsha\r\n".to_owned()),
            _ => {
                if words[0] != "CLUSTER" {
                    received.lock().unwrap().push(words.join(" "));
                }
                (reply.lock().unwrap())(&words)
            }
        };
        let Some(answer) = answer else { return };
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn read_command(reader: &mut impl BufRead) -> Option<Vec<String>> {
    let number = |mark: char, reader: &mut dyn BufRead| {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        line.trim_end().strip_prefix(mark)?.parse::<usize>().ok()
    };
    let count = number('*', reader)?;
    (0..count)
        .map(|_| {
            let mut word = vec![0; number('$', reader)? + 2];
            reader.read_exact(&mut word).ok()?;
            word.truncate(word.len() - 2);
            String::from_utf8(word).ok()
        })
        .collect()
}

fn cluster(nodes: &[&Node]) -> Cluster {
    Cluster::new(Arc::new(RedisSettings {
        nodes: nodes.iter().map(|node| node.address.clone()).collect(),
        user: None,
        password: None,
        prefix: String::new(),
        copies: 1,
        ack_wait_ms: 10,
        timeout_ms: 2_000,
    }))
}

/// A reply to `CLUSTER SLOTS`: ranges and the addresses of their primaries.
fn slots(ranges: &[(u16, u16, &str)]) -> String {
    let mut reply = format!("*{}\r\n", ranges.len());
    for (first, last, address) in ranges {
        let (host, port) = address.rsplit_once(':').unwrap();
        let length = host.len();
        reply += &format!("*3\r\n:{first}\r\n:{last}\r\n*2\r\n${length}\r\n{host}\r\n:{port}\r\n");
    }
    reply
}

fn get(slot: u16) -> Command {
    let bytes = command(&[b"GET", slot.to_string().as_bytes()]);
    Command { slot, operation: Operation::Command(bytes), copies: 1 }
}

fn bulk(text: &str) -> Option<String> {
    Some(format!("${}\r\n{text}\r\n", text.len()))
}

fn bytes(text: &str) -> Result<Value, CommandError> {
    Ok(Value::Bytes(text.into()))
}

#[test]
fn a_redis_without_cluster_mode_has_all_slots() {
    let node = Node::start(|words| match words[0].as_str() {
        "CLUSTER" => Some("-ERR This instance has cluster support disabled\r\n".to_owned()),
        _ => bulk(&words[1]),
    });
    let mut cluster = cluster(&[&node]);
    assert_eq!(cluster.run(&[get(0), get(16_383)]), [bytes("0"), bytes("16383")]);
    assert_eq!(cluster.primaries().unwrap(), std::slice::from_ref(&node.address));
}

#[test]
fn a_moved_slot_is_followed_and_remembered() {
    let new = Node::start(|_| bulk("new"));
    let target = new.address.clone();
    let old = Node::start(move |words| match words[0].as_str() {
        "CLUSTER" => Some("-ERR This instance has cluster support disabled\r\n".to_owned()),
        _ if words[1] == "7" => Some(format!("-MOVED 7 {target}\r\n")),
        _ => bulk("old"),
    });
    let mut cluster = cluster(&[&old]);
    assert_eq!(cluster.run(&[get(6), get(7)]), [bytes("old"), bytes("new")]);
    assert_eq!(cluster.run(&[get(7), get(6)]), [bytes("new"), bytes("old")]);
    assert_eq!(old.received(), ["GET 6", "GET 7", "GET 6"]);
    assert_eq!(new.received(), ["GET 7", "GET 7"]);
}

#[test]
fn a_slot_that_is_imported_is_asked_for_once() {
    let importing = Node::start(|words| match words[0].as_str() {
        "ASKING" => Some("+OK\r\n".to_owned()),
        _ => bulk("imported"),
    });
    let target = importing.address.clone();
    let old = Node::start(move |words| match words[0].as_str() {
        "CLUSTER" => Some("-ERR This instance has cluster support disabled\r\n".to_owned()),
        _ => Some(format!("-ASK 7 {target}\r\n")),
    });
    let mut cluster = cluster(&[&old]);
    assert_eq!(cluster.run(&[get(7)]), [bytes("imported")]);
    assert_eq!(cluster.run(&[get(7)]), [bytes("imported")]);
    assert_eq!(importing.received(), ["ASKING", "GET 7", "ASKING", "GET 7"]);
    assert_eq!(old.received().len(), 2, "the slot has not moved yet");
}

#[test]
fn redirections_in_a_circle_end() {
    let addresses: Arc<Mutex<Vec<String>>> = Arc::default();
    let nodes: Vec<Node> = (0..2)
        .map(|own| {
            let addresses = addresses.clone();
            Node::start(move |words| match words[0].as_str() {
                "CLUSTER" => Some("-ERR This instance has cluster support disabled\r\n".to_owned()),
                _ => Some(format!("-MOVED 7 {}\r\n", addresses.lock().unwrap()[1 - own])),
            })
        })
        .collect();
    addresses.lock().unwrap().extend(nodes.iter().map(|node| node.address.clone()));
    let mut cluster = cluster(&[&nodes[0]]);
    assert_eq!(
        cluster.run(&[get(7)]),
        [Err(CommandError::Retry("it was redirected too often".to_owned()))]
    );
    let received = nodes[0].received().len() + nodes[1].received().len();
    assert_eq!(received, REDIRECTIONS_MAX);
}

#[test]
fn a_missing_script_is_loaded_again() {
    let mut calls = 0;
    let node = Node::start(move |words| match words[0].as_str() {
        "CLUSTER" => Some("-ERR This instance has cluster support disabled\r\n".to_owned()),
        _ => {
            calls += 1;
            match calls {
                1 => Some("-NOSCRIPT No matching script.\r\n".to_owned()),
                _ => bulk(&words.join(" ")),
            }
        }
    });
    let operation = Operation::Script(vec![b"key".to_vec(), b"value".to_vec()]);
    let call = Command { slot: 1, operation, copies: 1 };
    assert_eq!(cluster(&[&node]).run(&[call]), [bytes("EVALSHA sha 1 key value")]);
}

#[test]
fn a_write_on_too_few_nodes_is_reported() {
    let node = Node::start(|words| match words[0].as_str() {
        "CLUSTER" => Some("-ERR This instance has cluster support disabled\r\n".to_owned()),
        "WAIT" => Some(":1\r\n".to_owned()),
        _ => bulk("written"),
    });
    let write = |copies| Command { copies, ..get(1) };
    let results = cluster(&[&node]).run(&[write(3), write(2), write(1)]);
    assert_eq!(results, [Err(CommandError::TooFewCopies(2)), bytes("written"), bytes("written")]);
    assert_eq!(node.received().last().unwrap(), "WAIT 2 10");
}

#[test]
fn errors_are_sorted_into_refused_and_retryable() {
    let node = Node::start(|words| match (words[0].as_str(), words[1].as_str()) {
        ("CLUSTER", _) => Some("-ERR This instance has cluster support disabled\r\n".to_owned()),
        (_, "1") => Some("-LOADING Redis is loading the dataset\r\n".to_owned()),
        (_, "2") => Some("-WRONGTYPE Operation against a key\r\n".to_owned()),
        _ => bulk("fine"),
    });
    let results = cluster(&[&node]).run(&[get(1), get(2), get(3)]);
    assert_eq!(
        results,
        [
            Err(CommandError::Retry("LOADING Redis is loading the dataset".to_owned())),
            Err(CommandError::Refused("WRONGTYPE Operation against a key".to_owned())),
            bytes("fine"),
        ]
    );
}

#[test]
fn a_lost_node_fails_only_its_own_commands() {
    let lost = Node::start(|_| None);
    let gone = lost.address.clone();
    let addresses = Arc::new(Mutex::new(String::new()));
    let own = addresses.clone();
    let well = Node::start(move |words| match words[0].as_str() {
        "CLUSTER" => {
            let own = own.lock().unwrap();
            Some(slots(&[(0, 99, &gone), (100, 16_383, &own)]))
        }
        _ => bulk("well"),
    });
    addresses.lock().unwrap().clone_from(&well.address);
    let mut cluster = cluster(&[&well]);
    for _ in 0..2 {
        let results = cluster.run(&[get(1), get(100)]);
        assert!(
            matches!(&results[0], Err(CommandError::Retry(why)) if why.contains(&lost.address))
        );
        assert_eq!(results[1], bytes("well"));
    }
}

#[test]
fn a_slot_without_a_node_may_be_retried() {
    let own = Arc::new(Mutex::new(String::new()));
    let address = own.clone();
    let node = Node::start(move |words| match words[0].as_str() {
        "CLUSTER" => Some(slots(&[(0, 99, &address.lock().unwrap())])),
        _ => bulk("well"),
    });
    own.lock().unwrap().clone_from(&node.address);
    let results = cluster(&[&node]).run(&[get(5), get(500)]);
    assert_eq!(results[0], bytes("well"));
    assert_eq!(results[1], Err(CommandError::Retry("no node has slot 500".to_owned())));
}

#[test]
fn without_any_node_every_command_may_be_retried() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut cluster = Cluster::new(Arc::new(RedisSettings {
        nodes: vec![closed],
        user: None,
        password: None,
        prefix: String::new(),
        copies: 1,
        ack_wait_ms: 0,
        timeout_ms: 100,
    }));
    let results = cluster.run(&[get(1), get(2)]);
    assert!(results.iter().all(|result| matches!(result, Err(CommandError::Retry(_)))));
    assert!(cluster.primaries().is_err());
}
