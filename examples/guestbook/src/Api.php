<?php

declare(strict_types=1);

namespace Guestbook;

use JsonException;

/** The same guestbook for programs. It knows no session: no user is signed in here. */
final readonly class Api
{
    public function __construct(private Entries $entries)
    {
    }

    public function list(Request $request): Response
    {
        $page = $request->number('page', 1, 1_000_000);
        $size = $request->number('per_page', 20, 100);
        return Response::json(200, [
            'page' => $page,
            'per_page' => $size,
            'total' => $this->entries->count(),
            'entries' => array_map($this->present(...), $this->entries->page($page, $size)),
        ]);
    }

    public function show(int $id): Response
    {
        $entry = $this->entries->find($id) ?? throw new Problem(404, 'There is no such entry.');
        return Response::json(200, $this->present($entry));
    }

    public function create(Request $request): Response
    {
        // A form of another site cannot send this type, so this needs no token.
        if ($request->contentType !== 'application/json') {
            throw new Problem(415, 'Send the entry as application/json.');
        }
        try {
            $sent = json_decode(file_get_contents('php://input'), true, 8, JSON_THROW_ON_ERROR);
        } catch (JsonException $error) {
            throw new Problem(400, 'The body is not JSON: ' . lcfirst($error->getMessage()) . '.');
        }
        $text = fn (string $key) => is_string($sent[$key] ?? null) ? trim($sent[$key]) : '';
        $name = $text('name');
        $message = $text('message');
        if ($errors = Entries::errors($name, $message)) {
            return Response::json(422, ['error' => 'The entry is not complete.', 'fields' => $errors]);
        }
        $entry = $this->entries->find($this->entries->add($name, $message));
        $location = 'Location: ' . View::url("/api/entries/{$entry['id']}");
        return Response::json(201, $this->present($entry), [$location]);
    }

    public static function problem(Problem $problem): Response
    {
        return Response::json($problem->status, ['error' => $problem->getMessage()], $problem->headers);
    }

    private function present(array $entry): array
    {
        return [
            'id' => $entry['id'],
            'name' => $entry['name'],
            'message' => $entry['message'],
            'picture' => $entry['picture'] === null ? null : View::url('/pictures/' . $entry['picture']),
            'written_at' => gmdate(DATE_RFC3339, $entry['written_at']),
        ];
    }
}
