//! Every example answers as its README says, served by its own configuration from a copy.

#![forbid(unsafe_code)]

use outboard_e2e::{
    App, Client, Connection, Example, FpmStack, MariaDb, Multipart, Request, Site, eventually,
};
use serde_json::json;
use std::process::Command;

#[test]
fn hello_worker_counts_its_requests_and_boots_once() {
    let example = Example::start("hello-worker");
    let first = example.json(&Request::get("/facts?name=Ada"), 200);
    let second = example.json(&Request::get("/facts"), 200);
    assert_eq!([&first["hello"], &second["hello"]], ["Ada", "world"]);
    assert_eq!([&first["handled"], &second["handled"]], [1, 2]);
    assert_eq!(first["booted"], second["booted"]);
    assert_eq!(first["worker"], second["worker"]);
    let mut client = example.client();
    client.get("/?name=%3Cb%3E").expect(200).holding("<dd>&lt;b&gt;");
    client.get("/style.css").expect(200).holding("--accent");
    client.get("/nowhere").expect(404).saying("There is nothing at /nowhere.\n");
}

#[test]
fn json_api_keeps_books_and_names_every_mistake() {
    let example = Example::start("json-api");
    let post = |body: &str| Request::post("/books", "application/json", body);
    let added = example.json(&post(r#"{"title":"Emma","author":"Jane Austen","year":1815}"#), 201);
    assert_eq!(added["id"], 1);
    let put = Request::new("PUT", "/books/1").body(r#"{"title":"E","author":"J","year":1816}"#);
    assert_eq!(example.json(&put, 200)["year"], 1816);
    let kept = json!({"books": [{"title": "E", "author": "J", "year": 1816, "id": 1}]});
    assert_eq!(example.json(&Request::get("/books"), 200), kept);
    let mistakes = example.json(&post(r#"{"title":" ","year":"soon"}"#), 422);
    let fields = mistakes["fields"].as_object().expect("a sentence per field");
    assert_eq!(fields.keys().collect::<Vec<_>>(), ["author", "title", "year"]);
    assert_eq!(example.json(&post("{"), 400)["problem"], "The body is not JSON: Syntax error.");
    example.json(&Request::new("PATCH", "/books/1"), 405);
    example.client().send(&Request::new("DELETE", "/books/1")).expect(204).saying("");
    example.json(&Request::get("/books/1"), 404);
    example.json(&Request::get("/elsewhere"), 404);
}

#[test]
fn parallel_fetches_have_the_same_answers_as_one_by_one() {
    let example = Example::start("parallel-fetches");
    let together = example.json(&Request::get("/"), 200);
    let one_by_one = example.json(&Request::get("/?one-by-one"), 200);
    assert_eq!(together["responses"], one_by_one["responses"]);
    assert_eq!(together["responses"]["weather"], json!({"sky": "clear", "celsius": 17}));
    assert_eq!(together["responses"].as_object().map(|answers| answers.len()), Some(4));
    let page = Request::get("/").header("Accept", "text/html");
    example.client().send(&page).expect(200).holding("all at the same time");
}

#[test]
fn mysql_is_asked_by_pdo_and_mysqli_from_one_process() {
    let database = MariaDb::start();
    let socket = database.socket().to_string_lossy();
    let variables = [
        ("MYSQL_SOCKET", &*socket),
        ("MYSQL_USER", MariaDb::USER),
        ("MYSQL_PASSWORD", MariaDb::PASSWORD),
    ];
    let example = Example::with("mysql-without-blocking", &variables, &[]);
    let worker = &example.json(&Request::get("/quick"), 200)["worker"];
    for target in ["/pdo", "/mysqli"] {
        let answer = example.json(&Request::get(target), 200);
        assert_eq!(answer["rows"][0]["slept"].to_string().trim_matches('"'), "0", "{answer}");
        assert_eq!(&answer["worker"], worker);
    }
    let four = example.json(&Request::get("/four"), 200);
    let mut connections: Vec<String> = four["rows"]
        .as_array()
        .expect("a row for each query")
        .iter()
        .map(|row| row["connection"].to_string())
        .collect();
    connections.sort();
    connections.dedup();
    assert_eq!(connections.len(), 4, "{four}");
}

/// The second event would come after a quarter of an hour: the first is there without it.
#[test]
fn streaming_sends_each_event_when_it_is_made() {
    let example = Example::start("streaming");
    let mut stream = Connection::open(example.address());
    let request = Request::get("/events?count=2&every=900");
    stream.send(&request.to_bytes("localhost")).expect("the server reads");
    let head = stream.head().expect("the answer has begun");
    let kind = head.header("Content-Type").unwrap_or_default();
    assert!(kind.starts_with("text/event-stream"), "{kind}");
    let event = stream.chunk().expect("an event comes").expect("it is not the end");
    let event = String::from_utf8_lossy(&event);
    assert!(event.starts_with("event: tick\nid: 1\ndata: {\"number\":1,"), "{event}");
    drop(stream);

    let text = example.client().get("/events?count=3&every=0").expect(200).text();
    assert_eq!(text.matches("event: tick\n").count(), 3, "{text}");
    let file = example.client().get("/numbers.csv?lines=20000").expect(200);
    assert!(file.header("Content-Disposition").is_some_and(|value| value.contains("numbers.csv")));
    assert!(file.text().ends_with("20000,400000000\n"));
    example.client().get("/").expect(200).holding("EventSource");
}

#[test]
fn slim_worker_boots_once_and_routes() {
    let example = Example::start("slim-worker");
    let first = example.json(&Request::get("/harbours/genoa"), 200);
    let second = example.json(&Request::get("/harbours/HAMBURG"), 200);
    assert_eq!([&first["reads"], &second["reads"]], [1, 2]);
    assert_eq!(second["country"], "Germany");
    example.json(&Request::get("/harbours/atlantis"), 404);
    let mut client = example.client();
    client.get("/").expect(200).holding("Harbours, by Slim");
    client.send(&Request::form("/sum", &[("numbers[]", "1"), ("numbers[]", "41")])).saying("42");
    let parts = Multipart::new().field("numbers[]", "7");
    client.send(&Request::upload("/sum", parts)).expect(200).saying("7");
    client.get("/nothing").expect(404);
}

#[test]
fn symfony_worker_resets_its_services_and_keeps_sessions_apart() {
    let example = Example::start("symfony-worker");
    for before in 0..3 {
        let answer = example.json(&Request::get("/worker"), 200);
        assert_eq!(answer["requests_before"], before);
        assert_eq!(answer["journal"], json!(["requested the worker"]));
    }
    let mut ada = example.client();
    let mut ben = example.client();
    ada.follow(&Request::form("/notes", &[("text", "a rope")])).expect(200).holding(">a rope</a>");
    ada.follow(&Request::form("/notes", &[("text", "<i>")])).expect(200).holding("&lt;i&gt;");
    ben.get("/").expect(200).holding("Nothing yet.");
    ada.get("/notes/1").expect(200).saying(r#"{"number":1,"text":"a rope"}"#);
    ben.get("/notes/1").expect(404);
    ben.send(&Request::form("/notes", &[("text", " ")])).expect(422);
}

/// What Composer's `vendor/autoload_runtime.php` does, with `APP_RUNTIME=Outboard\Symfony\Runtime`.
const AUTOLOAD_RUNTIME: &str = r#"<?php
require dirname(__DIR__) . '/src/autoload.php';
require_once 'Symfony/Component/Runtime/autoload.php';
$app = static fn (array $context) => new App\Kernel($context['APP_ENV'], false);
$runtime = new Outboard\Symfony\Runtime(['disable_dotenv' => true, 'outboard_loop_max' => 2]);
[$app, $arguments] = $runtime->getResolver($app)->resolve();
exit($runtime->getRunner($app(...$arguments))->run());
"#;

#[test]
fn symfony_runtime_stays_for_the_configured_requests() {
    let files = [("public/index.php", AUTOLOAD_RUNTIME)];
    let example = Example::with("symfony-worker", &[], &files);
    let answers = [0, 1, 0].map(|before| {
        let answer = example.json(&Request::get("/worker"), 200);
        assert_eq!(answer["requests_before"], before);
        answer["worker"].clone()
    });
    assert_eq!(answers[0], answers[1]);
    assert_ne!(answers[1], answers[2]);
}

#[test]
fn symfony_workers_front_controller_answers_under_php_fpm() {
    let (copy, folder) = Example::copied("symfony-worker");
    let open = Command::new("chmod").args(["-R", "a+rwX"]).arg(copy.path()).status();
    assert!(open.expect("chmod is there").success());
    let app = App::at(folder.join("public")).env("APP_ENV", "prod");
    let php_fpm = FpmStack::start(&app);
    let mut ada = Client::new(php_fpm.address());
    ada.follow(&Request::form("/notes", &[("text", "a rope")])).expect(200).holding(">a rope</a>");
    for _ in 0..2 {
        ada.get("/worker").expect(200).holding("\"requests_before\":0,");
    }
}

#[test]
fn symfony_rewind_forgets_even_static_variables() {
    let example = Example::start("symfony-rewind");
    // The same process, whose memory was put back; until the boot has written its cache, it is booted again.
    eventually("the same process handles two requests", || {
        let rope = example.json(&Request::new("POST", "/basket/rope"), 200);
        let lantern = example.json(&Request::new("POST", "/basket/lantern"), 200);
        assert_eq!(rope["basket"], json!(["rope"]));
        assert_eq!(lantern["basket"], json!(["lantern"]));
        rope["process"] == lantern["process"]
    });
    example.client().get("/").expect(200).holding("Ship chandler");
    example.client().get("/nothing").expect(404);
}

#[test]
fn mvc_routes_by_convention_and_by_attribute() {
    let example = Example::start("mvc");
    let mut client = example.client();
    for target in ["/", "/demo", "/demo/index", "/demo/index/index"] {
        client
            .get(target)
            .expect(200)
            .holding("<code>demo\\controller\\index::actionIndex()</code>");
    }
    client.get("/demo/index/hello?name=%3CAda%3E").expect(200).saying("Hello, &lt;Ada&gt;!");
    assert_eq!(example.json(&Request::get("/demo/index/json?page=2"), 200)["data"]["page"], 2);
    assert_eq!(example.json(&Request::get("/demo/index/json?page=two"), 422)["code"], 422);
    let refused = json!({"code": 1001, "msg": "This is an error in JSON."});
    assert_eq!(example.json(&Request::get("/demo/index/jsonError"), 400), refused);
    client.get("/demo/index/error").expect(500).holding("Something went wrong here.");
    client.get("/demo/index/nowhere").expect(404);
    client.get("/favicon.ico").expect(404);
    for way in ["", "/model", "/sync?times=1", "/parallel", "/task", "/http"] {
        client.get(&format!("/demo/async{way}")).expect(200).holding("<h1>");
    }
    client.get("/style.css").expect(200).holding("--accent");
}

#[test]
fn mvc_takes_forms_with_a_token_and_shows_traces_in_development() {
    let example = Example::with("mvc", &[("APP_ENV", "development")], &[]);
    let mut ada = example.client();
    let note = |token: &str, text: &str| {
        Request::form("/notes", &[("_token", token), ("name", "Ada"), ("text", text)])
    };
    ada.send(&note("guessed", "a rope")).expect(403);
    let page = ada.get("/notes").expect(200).text();
    let token = page.split("_token\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
    let token = token.expect("the form has a token").to_owned();
    ada.follow(&note(&token, "<a rope>")).expect(200).holding("&lt;a rope&gt;");
    ada.send(&note(&token, "")).expect(422).holding("Text is empty.");
    example.client().send(&note(&token, "forged")).expect(403);
    assert_eq!(example.json(&Request::get("/notes/1"), 200)["text"], "<a rope>");
    example.client().get("/demo/index/error").expect(500).holding("This was thrown by an action.");
}

#[test]
fn frankenphps_worker_script_runs_unchanged() {
    let example = Example::start("frankenphp-worker");
    let first = example.json(&Request::get("/hello?name=Ada"), 200);
    assert_eq!([&first["server"], &first["path"], &first["name"]], ["1", "/hello?name=Ada", "Ada"]);
    example.client().get("/?give=up").expect(500);
    let form = Request::form("/", &[("name", "Ben")]);
    let second = example.json(&form, 200);
    assert_eq!((&second["name"], &second["served"]), (&json!("Ben"), &json!(2)));
    assert_eq!(first["booted"], second["booted"]);
    let mut client = example.client();
    for visits in ["1", "2"] {
        let answer = client.get("/").expect(200);
        let cookie = answer.all("Set-Cookie").collect::<String>();
        assert!(cookie.starts_with(&format!("visits={visits}")), "{cookie}");
    }
}

#[test]
fn roadrunners_loop_runs_unchanged() {
    let example = Example::start("roadrunner-loop");
    let first = example.json(&Request::get("/hello?name=Ada"), 200);
    assert_eq!(first["query"], json!({"name": "Ada"}));
    example.client().get("/broken").expect(500).saying("Something went wrong");
    let form = example.json(&Request::form("/form", &[("a", "1")]), 200);
    assert_eq!((&form["form"], &form["served"]), (&json!({"a": "1"}), &json!(3)));
    let upload = Request::new("PUT", "/").body("x".repeat(100_000));
    assert_eq!(example.json(&upload, 200)["body"], 100_000);
    example.client().send(&Request::new("HEAD", "/")).expect(200).saying("");
}

#[test]
fn laravel_rewind_discards_state_but_keeps_sessions() {
    let example = Example::start("laravel-rewind");
    eventually("the same process handles two requests", || {
        let first = example.json(&Request::get("/process"), 200);
        let second = example.json(&Request::get("/process"), 200);
        assert_eq!((&first["requests"], &second["requests"]), (&json!(1), &json!(1)));
        first["process"] == second["process"]
    });
    let mut ada = example.client();
    let page = ada.get("/").expect(200).holding("Nothing yet.").text();
    let token =
        page.split("name=\"_token\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
    let token = token.expect("Blade's @csrf").to_owned();
    let form = |thing| Request::form("/", &[("_token", token.as_str()), ("thing", thing)]);
    ada.send(&form("a <rope>")).expect(302);
    ada.get("/").expect(200).holding("<li>a &lt;rope&gt;</li>");
    let json = form("").header("Accept", "application/json");
    ada.send(&json).expect(422).holding("\"thing\":[");
    example.client().send(&form("forged")).expect(419);
    example.client().get("/").expect(200).holding("Nothing yet.");
    example.client().get("/broken").expect(500);
    example.client().get("/style.css").expect(200);
}
