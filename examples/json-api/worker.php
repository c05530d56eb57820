<?php

/** A JSON API without a framework. The database is opened once per worker. */

declare(strict_types=1);

use Outboard\Request;
use Outboard\Response;

require __DIR__ . '/src/Books.php';
require __DIR__ . '/src/Problem.php';
require __DIR__ . '/src/Book.php';

$books = new Books(getenv('BOOKS_DATABASE') ?: __DIR__ . '/books.sqlite');

Outboard\serve(static function (Request $request) use ($books): Response {
    try {
        return route($request, $books);
    } catch (Problem $problem) {
        return Response::json($problem, $problem->status);
    }
});

function route(Request $request, Books $books): Response
{
    $method = $request->method();
    $path = $request->path();
    $id = preg_match('~^/books/([1-9]\d{0,8})$~', $path, $found) === 1 ? (int) $found[1] : null;

    return match (true) {
        $path === '/books' && $method === 'GET' => Response::json(['books' => $books->all()]),
        $path === '/books' && $method === 'POST' => created($books->add(Book::from(sent($request)))),
        $path === '/books' => throw Problem::method('GET, POST'),
        $id !== null && $method === 'GET' => Response::json($books->get($id)),
        $id !== null && $method === 'PUT' => Response::json($books->put($id, Book::from(sent($request)))),
        $id !== null && $method === 'DELETE' => removed($books, $id),
        $id !== null => throw Problem::method('GET, PUT, DELETE'),
        default => throw new Problem(404, "There is nothing at $path."),
    };
}

/** @return array<array-key, mixed> */
function sent(Request $request): array
{
    try {
        $value = $request->json();
    } catch (JsonException $error) {
        throw new Problem(400, "The body is not JSON: {$error->getMessage()}.");
    }
    return is_array($value) ? $value : throw new Problem(400, 'The body is not a JSON object.');
}

function created(Book $book): Response
{
    return Response::json($book, 201, ['Location' => "/books/$book->id"]);
}

function removed(Books $books, int $id): Response
{
    $books->remove($id);
    return new Response(status: 204);
}
