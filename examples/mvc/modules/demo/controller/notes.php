<?php

declare(strict_types=1);

namespace demo\controller;

use demo\model\Note;
use demo\model\Board;
use Outboard\Mvc\Controller;
use Outboard\Mvc\Problem;
use Outboard\Mvc\Route;
use Outboard\Response;

/** Explicit routes, a form with a token, a session, validated input. */
#[Route('/notes')]
final class notes extends Controller
{
    public function __construct(private readonly Board $board)
    {
    }

    #[Route('', 'notes', 'GET')]
    public function list(): Response
    {
        $values = ['notes' => $this->board->all(), 'flashes' => $this->session()->flashes()];
        return $this->page('notes/list', $values + ['name' => $this->session()->get('name', '')]);
    }

    #[Route('', '', 'POST')]
    public function add(Note $note): Response
    {
        $this->board->add($note);
        $this->session()->set('name', $note->name);
        $this->session()->flash('Your note is on the board.');
        return $this->redirect($this->url('notes'));
    }

    #[Route('/{id}', 'note', 'GET')]
    public function show(int $id): array
    {
        return $this->board->get($id) ?? throw new Problem(404, "There is no note $id.");
    }
}
