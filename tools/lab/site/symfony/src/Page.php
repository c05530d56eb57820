<?php
namespace App;

use Symfony\Component\HttpFoundation\Response;
use Twig\Environment;

class Page
{
    public function __construct(private Environment $twig)
    {
    }

    public function home(): Response
    {
        return new Response($this->twig->render('page.html.twig', ['title' => 'Home']));
    }

    public function article(string $slug): Response
    {
        return new Response($this->twig->render('page.html.twig', ['title' => $slug]));
    }
}
