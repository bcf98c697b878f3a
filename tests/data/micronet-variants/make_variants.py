#!/usr/bin/env python3
"""Writes the checkpoints of this folder: MicroNet networks with random weights and options that the trained
checkpoints do not have, saved by torch.save, with log-probabilities of a whole-sequence evaluation in PyTorch
float64. Needs PyTorch and numpy (made with PyTorch 1.13: Debian's python3-torch).

    python3 make_variants.py          writes beside itself

The evaluation is written from the published description (Yan et al. 2020, and the training code's options); it
shares nothing with kinglet.
"""
import torch, math, os, sys, collections, random, struct, yaml
import numpy as np
F=torch.nn.functional
def trunc(x,bits):  # float32 tensor, clear low bits
    a=x.numpy().astype(np.float32).view(np.uint32)&np.uint32((0xffffffff<<bits)&0xffffffff)
    return torch.from_numpy(a.view(np.float32).copy())
def quant_rows(w,bits):
    n=2**(bits-1)-1
    m=w.abs().max(1)[0]; s=torch.where(m>0,n/m,torch.ones_like(m))
    q=torch.round(s[:,None]*w); sp=trunc(1/s,bits)
    return q*sp[:,None]
def quant_tensor(w,bits,t=False):
    n=2**(bits-1)-1; m=w.abs().max(); s=n/m if m>0 else torch.tensor(1.)
    q=torch.round(s*w)
    if t: return q*trunc((1/s).reshape(1),bits)
    return q/s
def build(cfg,seed=0,prune=0.0):
    g=torch.Generator().manual_seed(seed)
    R=lambda *s,k=1.0: torch.randn(*s,generator=g)*k
    d=cfg['n_embed']; V=cfg['n_vocab']; cut=[0]+cfg.get('cutoffs',[])+[V]; nb=len(cut)-1
    dims=cfg.get('n_embeds') or [d//cfg.get('adaptive_ratio',1)**i for i in range(nb)]
    H,nk,nv,ni,L,S=[cfg[k] for k in('n_head','n_k','n_v','n_inner','n_layers','n_seq')]
    net=collections.OrderedDict()
    for i in range(nb): net['embed.layers.%d.weight'%i]=R(cut[i+1]-cut[i],dims[i],k=0.3)
    for i in range(1,nb): net['embed.projections.%d.weight'%(i-1)]=R(d,dims[i],k=0.3)
    for l in range(L):
        p='layers.%d.'%l
        net[p+'pos_emb']=R(nk,S+1,k=0.3)
        net[p+'ln1.weight']=1+R(d,k=0.1); net[p+'ln1.bias']=R(d,k=0.1)
        net[p+'qkv.weight']=R(H*(2*nk+nv),d,k=0.1); net[p+'qkv.bias']=R(H*(2*nk+nv),k=0.1)
        net[p+'out.weight']=R(d,H*nv,k=0.1)
        net[p+'ln2.weight']=1+R(d,k=0.1); net[p+'ln2.bias']=R(d,k=0.1)
        net[p+'fc.0.weight']=R(ni,d,k=0.1); net[p+'fc.0.bias']=R(ni,k=0.1)
        net[p+'fc.3.weight']=R(d,ni,k=0.1); net[p+'fc.3.bias']=R(d,k=0.1)
    net['loss.clusters.weight']=R(nb-1,d,k=0.3); net['loss.clusters.bias']=R(nb-1,k=0.3)
    for i in range(nb):
        net['loss.layers.%d.weight'%i]=net['embed.layers.%d.weight'%i].clone()
        net['loss.layers.%d.bias'%i]=R(cut[i+1]-cut[i],k=0.3)
    for i in range(1,nb): net['loss.projections.%d.weight'%(i-1)]=R(dims[i],d,k=0.3)
    if prune:
        for k in net:
            if net[k].dim()==2 and 'clusters' not in k and 'pos_emb' not in k:
                w=net[k]; t=w.abs().flatten().kthvalue(max(1,int(prune*w.numel())))[0]; net[k]=torch.where(w.abs()<=t,torch.zeros_like(w),w)
        for i in range(nb): net['embed.layers.%d.weight'%i]=net['loss.layers.%d.weight'%i].clone()
    return net,dims,cut
def forward(cfg,net,ids,quant,theta,lam,ncache,dims,cut,track=None):
    D=torch.float64; n={k:v.to(D) for k,v in net.items()}
    d=cfg['n_embed'];H,nk,nv,L,S=[cfg[k] for k in('n_head','n_k','n_v','n_layers','n_seq')]; nb=len(cut)-1; N=len(ids)
    def Q(name,x):
        if track is not None: track[name]=max(track.get(name,0.),x.abs().max().item()); 
        if not quant: return x
        m=n[name+'.max_abs'].reshape(()); s=n[name+'.inv_scale'].reshape(())
        return torch.round(torch.clamp(x,-m,m)/s)*s
    xs=[]
    for t in ids:
        b=[i for i in range(nb) if cut[i]<=t<cut[i+1]][0]
        e=n['loss.layers.%d.weight'%b][t-cut[b]]
        if b: e=n['embed.projections.%d.weight'%(b-1)]@e
        xs.append(e*math.sqrt(d))
    x=torch.stack(xs)
    for l in range(L):
        p='layers.%d.'%l
        u=Q(p+'quant_ln1',F.layer_norm(x,(d,),n[p+'ln1.weight'],n[p+'ln1.bias']))
        z=Q(p+'quant_qkv',u@n[p+'qkv.weight'].t()+n[p+'qkv.bias']).view(N,H,2*nk+nv)
        q,k,v=z.split([nk,nk,nv],-1)
        pad=torch.zeros(S,H,nk,dtype=D); K=torch.cat([pad,k]); Vv=torch.cat([torch.zeros(S,H,nv,dtype=D),v])
        idx=torch.arange(N)[:,None]+torch.arange(S+1)[None]   # window slot s -> index in padded
        KW=K[idx]; VW=Vv[idx]  # N,C,H,*
        sc=torch.einsum('nhk,nchk->nhc',q,KW)+torch.einsum('nhk,kc->nhc',q,n[p+'pos_emb'])
        sc=sc*nk**-0.5
        if not quant: sc=sc.masked_fill((idx<S)[:,None],-float('inf'))
        a=Q(p+'quant_attn',torch.softmax(sc,-1))
        o=Q(p+'quant_attnv',torch.einsum('nhc,nchv->nhv',a,VW).reshape(N,H*nv))
        x=x+o@n[p+'out.weight'].t()
        u=Q(p+'quant_ln2',F.layer_norm(x,(d,),n[p+'ln2.weight'],n[p+'ln2.bias']))
        h=Q(p+'fc.1',torch.relu(u@n[p+'fc.0.weight'].t()+n[p+'fc.0.bias']))
        x=x+Q(p+'fc.4',h@n[p+'fc.3.weight'].t()+n[p+'fc.3.bias'])
    h=Q('quant',x)
    head=torch.cat([n['loss.layers.0.weight'],n['loss.clusters.weight']]); hb=torch.cat([n['loss.layers.0.bias'],n['loss.clusters.bias']])
    lp=torch.log_softmax(h@head.t()+hb,-1)
    out=[lp[:,:cut[1]]]
    for i in range(1,nb):
        out.append(lp[:,-i][:,None]+torch.log_softmax((h@n['loss.projections.%d.weight'%(i-1)].t())@n['loss.layers.%d.weight'%i].t()+n['loss.layers.%d.bias'%i],-1))
    lp=torch.cat(out,1); res=[]
    for t in range(N-1):
        y=ids[t+1]; v=lp[t,y].item()
        if ncache:
            lo=max(0,t-ncache); pc=0.
            if t>lo:
                w=torch.softmax(theta*(h[lo:t]@h[t]),0); pc=sum(w[i-lo].item() for i in range(lo,t) if ids[i+1]==y)
            v=math.log((1-lam)*math.exp(v)+lam*pc)
        res.append(v)
    return res
base=dict(n_vocab=70,n_embed=12,n_embeds=[12,8,4],cutoffs=[20,40],n_layers=2,n_head=2,n_k=6,n_v=5,n_inner=20,n_seq=9,pos_emb='trained',use_cache=True,n_cache=30,cache_theta=0.02,cache_lambda=0.13)
def case(name,over,bits=None,prune=0.,step=None,layout='models',zipf=False,bare=False,search=None,params=None,N=120,drop=()):
    cfg=dict(base); cfg.update(over); [cfg.pop(k) for k in drop if k in cfg]
    if bits: cfg.update(bits=bits,model='quantize.Transformer')
    net,dims,cut=build(cfg,seed=sum(map(ord,name)),prune=prune)
    rnd=random.Random(1); ids=[rnd.randrange(10) if rnd.random()<.5 else rnd.randrange(cfg['n_vocab']) for _ in range(N)]
    if bits:
        track={}
        q=collections.OrderedDict()
        forward(cfg,net,ids,False,0,0,0,dims,cut,track)
        for k,w in net.items():
            if w.dim()==2 and 'pos_emb' not in k:
                q[k]=quant_tensor(w,bits,True) if k.startswith('embed.layers') else (quant_rows(w,bits) if w.shape[0] else w)
            elif w.dim()==1 and '.ln' not in k: q[k]=quant_tensor(w,bits) if w.numel() else w
            else: q[k]=w
        n_=2**(bits-1)-1
        for k,m in track.items():
            q[k+'.max_abs']=torch.tensor([m*0.9],dtype=torch.float32); q[k+'.inv_scale']=trunc(torch.tensor([m*0.9],dtype=torch.float32)/n_,bits).reshape(())
        net=dict(q)
    theta=cfg.get('cache_theta',0.016); lam=cfg.get('cache_lambda',0.07)
    if params:
        net['loss.cache_theta_inv_softplus']=torch.tensor(params[0]); net['loss.cache_lambda_inv_sigmoid']=torch.tensor(params[1])
        theta=math.log1p(math.exp(float(net['loss.cache_theta_inv_softplus']))); lam=1/(1+math.exp(-float(net['loss.cache_lambda_inv_sigmoid'])))
    dir=os.path.join(os.path.dirname(os.path.abspath(__file__)),name); os.makedirs(dir+'/models',exist_ok=True)
    st=step if step is not None else (1 if bits else 700)
    if search: yaml.safe_dump(dict(use_cache=True,n_cache=cfg['n_cache'],cache_lambda=search[1],cache_theta=search[0]),open(dir+'/cache_step%d_n%d.yaml'%(st,cfg['n_cache']),'w')); theta,lam=search
    nc=cfg['n_cache'] if cfg.get('use_cache') else 0
    g=forward(cfg,net,ids,bool(bits),theta,lam,nc,dims,cut)
    yaml.safe_dump(cfg,open(dir+'/config.yaml','w'))
    obj=net if bare else dict(step=st,net=net,**({} if bits else dict(opt={'state':{},'param_groups':[{'lr':1e-4}]},amp={'x':1})))
    torch.save(obj,dir+'/models/model-%d.pth'%st,_use_new_zipfile_serialization=zipf)
    open(dir+'/tokens.txt','w').write(' '.join(map(str,ids)))
    open(dir+'/golden_f64.tsv','w').write(''.join('%d\t%d\t%.15g\n'%(i+1,ids[i+1],v) for i,v in enumerate(g)))
    words=['w%d'%i for i in range(cfg['n_vocab'])]
    if zipf: np.save(dir+'/vocab.npy',np.array(words,dtype=object),allow_pickle=True)
    elif bare: np.save(dir+'/vocab.npy',np.array(words))
    else: open(dir+'/vocab.txt','w').write('\n'.join(words)+'\n')

case('four-bins-zip',dict(cutoffs=[15,30,50],n_embeds=[12,8,4,2],n_k=7,n_v=3,n_seq=5),zipf=True)
case('one-bin',{},drop=['cutoffs','n_embeds'])
case('one-bin-9bit',{},drop=['cutoffs','n_embeds'],bits=9)
case('adaptive-ratio-bare',dict(adaptive_ratio=2),drop=['n_embeds'],bare=True)
case('8bit-pruned-zip',dict(n_seq=14),bits=8,prune=.4,zipf=True)
case('10bit-search-file',{},bits=10,search=(0.05,0.3))
case('16bit',{},bits=16)
case('trained-cache-overruled',dict(cache_theta_init=0.016,cache_lambda_init=0.07),params=(-4.,-1.5),search=(0.05,0.3),drop=['cache_theta','cache_lambda'])
case('no-cache',{},drop=['use_cache','n_cache','cache_theta','cache_lambda'])
case('cache-longer-than-text',dict(n_cache=8000))
