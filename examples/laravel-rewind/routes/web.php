<?php

declare(strict_types=1);

use Illuminate\Http\Request;
use Illuminate\Routing\Router;

return static function (Router $router): void {
    $router->get('/', static fn (Request $request) => view('list', ['things' => $request->session()->get('things', [])]));

    $router->post('/', static function (Request $request) {
        $thing = $request->validate(['thing' => 'required|string|max:40'])['thing'];
        $request->session()->push('things', $thing);
        return redirect('/');
    });

    $router->get('/process', static function () {
        static $requests = 0;
        return ['process' => getmypid(), 'requests' => ++$requests, 'laravel' => app()->version()];
    });

    $router->get('/broken', static fn () => throw new DomainException('on purpose'));
};
