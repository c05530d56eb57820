use super::*;
use crate::random::Random;
use crate::target::Target;
use crate::template::Source;

fn script(text: &str) -> Result<Script, String> {
    let raw: RawFile = toml::from_str(text).map_err(|error| error.to_string())?;
    let script = raw.scenario[0].script()?;
    check_values(&script, &[])?;
    Ok(script)
}

fn step(lines: &str) -> Result<Step, String> {
    let text = format!("[[scenario]]\nname = 'x'\n[[scenario.step]]\n{lines}");
    Ok(script(&text)?.steps.remove(0))
}

fn render(template: &Template, values: &[(String, String)]) -> String {
    let mut random = Random::new(0);
    let mut source =
        Source { seq: 1, keys: &mut crate::keys::Keys::of(1), random: &mut random, values };
    let mut out = Vec::new();
    template.render(&mut source, &mut out);
    String::from_utf8(out).expect("it is text")
}

#[test]
fn a_step_has_a_request_and_checks() {
    let step = step(
        "request = 'put /e/{seq}'\nheaders = { X-A = 'b' }\nbody = 'x'\n\
         think = '1s..2s'\ncheck = { status = 201, length = 5, body = 'ok' }",
    )
    .expect("it is a step");
    assert_eq!(step.request.method, "PUT");
    assert_eq!(render(&step.request.path, &[]), "/e/1");
    assert_eq!(step.think, (Duration::from_secs(1), Duration::from_secs(2)));
    let body_contains = Some("ok".to_owned());
    let expect = Expect { status: Some(201), length_bytes: Some(5), body_contains, body_is: None };
    assert_eq!(step.expect, expect);
}

#[test]
fn forms_are_encoded_with_the_values_that_fill_them() {
    let text = "[[scenario]]\nname = 'x'\n\
                [[scenario.step]]\nrequest = 'GET /'\ncapture = { token = 'a(b)' }\n\
                [[scenario.step]]\nrequest = 'POST /x?t={token}'\n\
                form = { 'a b' = 'c&d', token = '{token}' }";
    let script = script(text).expect("it is a script");
    let values = [("token".to_owned(), "1+2=ä".to_owned())];
    let request = &script.steps[1].request;
    assert_eq!(render(&request.body, &values), "a%20b=c%26d&token=1%2B2%3D%C3%A4");
    assert_eq!(render(&request.path, &values), "/x?t=1%2B2%3D%C3%A4");
    assert_eq!(request.headers[0].0, "Content-Type");
}

#[test]
fn mistakes_name_their_place() {
    for (lines, why) in [
        ("request = '/x'", "METHOD"),
        ("request = 'GET /{nobody}'", "{nobody}"),
        ("request = 'GET /'\nthink = '2s..1s'", "shorter"),
        ("request = 'GET /'\nbody = 'x'\nform = { a = 'b' }", "exclude"),
        ("request = 'GET /'\ncapture = { a = '(' }", "capture a"),
        ("request = 'GET /'\ncolour = 'red'", "colour"),
    ] {
        let error = step(lines).expect_err(lines);
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let mut plan = Plan::new(Target::parse("http://127.0.0.1:1/").expect("a URL"));
    let error = plan.load_scenario(Path::new("/nowhere/x.toml")).expect_err("it is not there");
    assert!(error.to_string().starts_with("/nowhere/x.toml: "), "{error}");
}

#[test]
fn quoted_values_may_hold_everything() {
    let rows = parse_csv("a,b\r\n\"x,\"\"y\"\"\nz\",2\n\n,\n");
    assert_eq!(rows, [["a", "b"], ["x,\"y\"\nz", "2"], ["", ""]]);
}

#[test]
fn times_have_units() {
    assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
    assert_eq!(parse_duration("1.5"), Ok(Duration::from_millis(1500)));
    assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
    assert!(parse_duration("5 apples").is_err());
    assert!(parse_duration("").is_err());
}
