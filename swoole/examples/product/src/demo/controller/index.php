<?php

namespace demo\controller;

class index extends \web\Controller
{
    public function actionIndex()
    {
        return '<h1>Hello, product</h1>';
    }

    public function actionJson()
    {
        return $this->json(['name' => $this->request->get['name'] ?? 'nobody']);
    }

    public function actionJsonError()
    {
        $this->isJson = true;
        throw new \RuntimeException('no such thing', 1001);
    }

    public function actionError()
    {
        throw new \RuntimeException('it <failed>');
    }
}
