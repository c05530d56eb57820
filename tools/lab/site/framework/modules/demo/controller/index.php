<?php
namespace demo\controller;

use Outboard\Mvc\Route;
use Outboard\Response;

// The same page as an action.
final class index
{
    public function actionIndex(): Response
    {
        return $this->page();
    }

    // At the path that it has under php-fpm.
    #[Route('/index.php')]
    public function page(): Response
    {
        return Response::text("hello from a controller", headers: [
            'Last-Modified' => 'Fri, 02 Sep 2016 08:00:00 GMT',
            'ETag' => '"57c93480-17"',
            'Accept-Ranges' => 'bytes',
        ]);
    }
}
